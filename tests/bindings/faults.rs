//! faults.rs - what the crate perfring does where safe code is used in odd ways: an error or a panic, and nothing undefined.
//!
//!     faults FILE        FILE: a perf.data file that has a sample with an id of no event
use perfring::{sys, Attr, Error, File, Format, NewSample, Record, Result, Ring, RingOptions, SampleBuffer, Session, SoftEvent};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn ring() -> Ring {
    Ring::create(&RingOptions { pages: 4, ..RingOptions::default() }).unwrap()
}

fn clock() -> Attr {
    let fields = sys::PERFRING_SAMPLE_IDENTIFIER | sys::PERFRING_SAMPLE_IP | sys::PERFRING_SAMPLE_TID | sys::PERFRING_SAMPLE_TIME;
    Attr::parse("cpu-clock").unwrap().period(1_000_000).sample_type(fields)
}

/// Whether it panics, of which no word is said.
fn panics<T>(call: impl FnOnce() -> T + std::panic::UnwindSafe) -> bool {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let result = std::panic::catch_unwind(call);
    std::panic::set_hook(hook);
    result.is_err()
}

/// A flag that the word does not have is no shift by more than its bits.
fn flags() {
    assert_eq!(Attr::parse("cpu-clock").unwrap().flag(63, true).members().flags >> 63, 1);
    assert!(panics(|| Attr::parse("cpu-clock").unwrap().flag(64, true)));
}

/// Each errno is kept, and its text.
fn errors() {
    for code in [-1, -12, -16, -22, -28, -74, -95, 0, 1, i32::MAX, i32::MIN] {
        assert_eq!(Error::from_code(code).code(), code);
        assert!(!Error::from_code(code).to_string().is_empty());
    }
    let error = Attr::parse("nosuch:event").unwrap_err();
    assert!(matches!(error, Error::Os(2 | 13, _)), "{error:?}");
    assert!(error.fault().is_some(), "{error:?}");
    assert!(Attr::parse("cycles:x").unwrap_err().to_string().starts_with("at 7: unknown modifier: "));
}

/// One reader at a time; a writer in another thread than the ring's.
fn readers() {
    let ring = ring();
    let format = Format::new(sys::PERFRING_SAMPLE_IP);
    let mut reader = ring.reader().unwrap();
    assert_eq!(ring.reader().err(), Some(Error::Busy));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = ring.writer().unwrap();
            for ip in 0..100 {
                writer.put(&format, &NewSample { ip, ..NewSample::default() }).unwrap();
            }
        });
        let (mut buffer, mut next) = (SampleBuffer::new(), 0);
        while next < 100 {
            reader.observe().unwrap();
            while let Some(record) = reader.next_record().unwrap() {
                assert_eq!(record.sample(&format, &mut buffer).unwrap().ip(), Some(next));
                next += 1;
            }
            reader.return_space();
        }
    });
    drop(reader);
    assert_eq!(ring.reader().unwrap().observe(), Ok(0));
    // Of an overwriting ring there is none, and that it was refused does not count as one.
    let ring = Ring::create(&RingOptions { pages: 1, flags: sys::PERFRING_RING_OVERWRITE, event: None }).unwrap();
    assert!(matches!(ring.reader().err(), Some(Error::Invalid(_))));
    assert!(matches!(ring.reader().err(), Some(Error::Invalid(_))));
}

/// A claim that is forgotten keeps its space from all later records, and no more.
fn claims() {
    let ring = ring();
    let mut writer = ring.writer().unwrap();
    std::mem::forget(writer.reserve(64));
    let mut record = [0u8; 16];
    record[0] = sys::PERFRING_RECORD_SAMPLE as u8;
    record[6] = 16;
    assert!(writer.write(&record));
    let mut reader = ring.reader().unwrap();
    assert_eq!(reader.observe(), Ok(0));
    drop(writer);
    assert!(ring.writer().unwrap().write(&record));
    assert_eq!(reader.observe(), Ok(16));
    assert!(panics(|| {
        let ring = self::ring();
        let mut writer = ring.writer().unwrap();
        let mut claim = writer.reserve(24).unwrap();
        claim.bytes().fill(0);
        claim.commit()
    }));
}

/// A chain that ends in its middle says so.
fn chains() {
    let format = Format::new(sys::PERFRING_SAMPLE_CALLCHAIN);
    let deferred = -640i64 as u64; // PERF_CONTEXT_USER_DEFERRED
    for (chain, count, whole) in [(&[1, 2][..], 2, true), (&[1, deferred][..], 1, false), (&[1, deferred, 9][..], 1, true)] {
        let mut bytes = [0u8; 64];
        let size = NewSample { callchain: chain, ..NewSample::default() }.encode(&format, &mut bytes).unwrap();
        let (mut buffer, record) = (SampleBuffer::new(), Record::from_bytes(&bytes[..size]).unwrap());
        let mut frames = record.sample(&format, &mut buffer).unwrap().frames();
        assert_eq!(frames.by_ref().count(), count);
        assert_eq!(frames.status().is_ok(), whole, "{chain:?}");
        assert_eq!(frames.next(), None);
        assert_eq!(frames.status().is_ok(), whole, "{chain:?}");
        assert_eq!(frames.cookie(), (chain.len() == 3).then_some(9));
    }
}

/// Bytes that hold no record, at any address.
fn records() {
    let mut bytes = [0u8; 32];
    bytes[14] = 8;
    for from in 0..8 {
        for size in 0..8 {
            assert!(Record::from_bytes(&bytes[from..from + size]).is_none());
        }
    }
    assert!(Record::from_bytes(&bytes[..8]).is_none());
    assert_eq!(Record::from_bytes(&bytes[8..]).unwrap().bytes().len(), 8);
    assert!(Record::from_bytes(&bytes[8..15]).is_none());
}

/// The record with an error is there until the next call, and the items after it come.
fn damage(path: &str) -> Result<()> {
    let mut file = File::open(path)?;
    let (mut errors, mut items) = (0, 0);
    assert!(file.damaged().is_none());
    loop {
        match file.next_item() {
            Ok(Some(_)) => items += 1,
            Ok(None) => break,
            Err(error) => {
                assert!(matches!(error, Error::BadBytes(_)), "{error:?}");
                assert!(file.damaged().unwrap().is_sample());
                errors += 1;
                continue;
            }
        }
        assert!(file.damaged().is_none());
    }
    assert!(errors > 0 && items > 0, "{errors} {items}");
    Ok(())
}

fn spin(until: &dyn Fn() -> bool) {
    let from = Instant::now();
    while !until() && from.elapsed() < Duration::from_secs(20) {
        std::hint::spin_loop();
    }
}

fn read_some(session: &mut Session) -> Result<u64> {
    let mut samples = 0;
    session.wait(20)?;
    while let Some(item) = session.next_item()? {
        samples += u64::from(item.record().is_sample());
    }
    session.return_space();
    Ok(samples)
}

/// An event's rings are read by one session at a time, in any thread.
fn sessions() -> Result<()> {
    // Opened by a thread that has ended.
    let mut event = std::thread::spawn(|| SoftEvent::open(&clock())).join().unwrap()?;
    event.map(16)?;
    let (samples, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    for _ in 0..2 {
        let mut session = Session::open(0)?;
        session.add_soft(&event)?;
        assert_eq!(session.add_soft(&event), Err(Error::Busy));
        let mut other = Session::open(0)?;
        assert_eq!(other.add_soft(&event), Err(Error::Busy));
        read_some(&mut other)?;
        samples.store(0, Relaxed);
        is_over.store(false, Relaxed);
        std::thread::scope(|scope| {
            let (samples, is_over, event) = (&samples, &is_over, &event);
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    samples.fetch_add(read_some(&mut session).unwrap(), Relaxed);
                }
                session // dropped here
            });
            // Of a thread that has joined, and leaves while its ring is read.
            scope.spawn(move || {
                let _own = SoftEvent::open(&clock()).unwrap();
                event.enable();
                spin(&|| samples.load(Relaxed) >= 20);
                is_over.store(true, Relaxed);
            });
        });
        assert!(samples.load(Relaxed) >= 20);
    }
    // That an add fails does not keep the event.
    let bare = SoftEvent::open(&clock())?;
    let mut session = Session::open(0)?;
    assert!(matches!(session.add_soft(&bare), Err(Error::Invalid(_))));
    assert!(matches!(session.add_soft(&bare), Err(Error::Invalid(_))));
    // A session that is forgotten keeps it.
    let mut forgotten = Session::open(0)?;
    forgotten.add_soft(&event)?;
    std::mem::forget(forgotten);
    assert_eq!(session.add_soft(&event), Err(Error::Busy));
    Ok(())
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).expect("faults FILE");
    flags();
    errors();
    readers();
    claims();
    chains();
    records();
    damage(&path)?;
    sessions()
}
