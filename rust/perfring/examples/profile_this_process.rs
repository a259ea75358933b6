//! profile_this_process.rs - a program that samples itself: by the kernel's cpu-clock, or, where perf_event_open is refused and with
//! --soft, by its own.
use perfring::{sys, Attr, Result, SampleBuffer, Session, SoftEvent, Target};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static SUM: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn work() {
    for i in 0..100_000_000u64 {
        SUM.fetch_add(i, Relaxed);
    }
}

/// The kernel's event of this thread.
fn observe(session: &mut Session, attr: &Attr) -> Result<()> {
    let mut target = Target::open()?;
    target.add_thread(0)?;
    session.configure(0, sys::PERFRING_FALLBACK_EXCLUDE_KERNEL)?;
    session.add(attr, &target)?;
    session.enable()
}

fn sum_up(how: &str, session: &mut Session) -> Result<bool> {
    let mut buffer = SampleBuffer::new();
    let (mut samples, mut all, mut inside) = (0u64, 0u64, 0u64);

    work();
    session.flush();
    while let Some(item) = session.next_item()? {
        if item.record().is_sample() {
            let sample = item.sample(&mut buffer)?;
            let period = sample.period().unwrap_or(0); // ns of CPU time
            samples += 1;
            all += period;
            if sample.ip().unwrap_or(0).wrapping_sub(work as fn() as usize as u64) < 200 {
                inside += period;
            }
        }
    }
    session.return_space();
    println!(
        "{how}: {samples} samples, {:.2} s of CPU time, {:.0} % of it in work",
        all as f64 / 1e9,
        100.0 * inside as f64 / all.max(1) as f64
    );
    Ok(inside * 2 >= all)
}

fn run() -> Result<bool> {
    let attr = Attr::parse("cpu-clock")?
        .frequency(250)
        .sample_type(
            sys::PERFRING_SAMPLE_IDENTIFIER
                | sys::PERFRING_SAMPLE_IP
                | sys::PERFRING_SAMPLE_TID
                | sys::PERFRING_SAMPLE_TIME
                | sys::PERFRING_SAMPLE_PERIOD,
        )
        .flag(sys::PERFRING_ATTR_FLAG_disabled, true);

    if std::env::args().nth(1).as_deref() != Some("--soft") {
        let mut session = Session::open(0)?;
        match observe(&mut session, &attr) {
            Ok(()) => return sum_up("kernel", &mut session),
            Err(error) => eprintln!("profile_this_process: {error}: {}", session.refusal()),
        }
    }
    let mut event = SoftEvent::open(&attr)?;
    event.map(64)?;
    let mut session = Session::open(0)?; // ends before the event
    session.add_soft(&event)?;
    event.enable();
    sum_up("soft", &mut session)
}

fn main() {
    match run() {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(error) => {
            eprintln!("profile_this_process: {error}");
            std::process::exit(1);
        }
    }
}
