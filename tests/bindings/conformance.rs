//! conformance.rs - what conformance.c says, by the crate perfring: see there.
use perfring::{
    sys, Error, File, Format, NewSample, Reader, Record, RecordBuffer, Ring, RingOptions, SampleBuffer, Session, Writer,
};
use std::io::{self, BufWriter, StdoutLock, Write};

type Out<'a> = BufWriter<StdoutLock<'a>>;

struct Buffers {
    sample: SampleBuffer,
    record: RecordBuffer,
}

fn print(out: &mut Out, buffers: &mut Buffers, record: Record, format: Option<&Format>, time: u64) -> io::Result<()> {
    let (mut pid, mut tid, mut ip, mut period, mut chain, mut raw) = (0u32, 0u32, 0u64, 0u64, 0u64, 0u64);
    let mut text: &[u8] = b"";
    let mut why = None;

    if !record.is_sample() {
        match record.decode(format, &mut buffers.record) {
            Ok(decoded) => {
                if let Some(thread) = decoded.thread() {
                    (pid, tid) = thread;
                }
                if let Some(comm) = decoded.comm() {
                    text = comm.comm;
                }
                if record.kind() == sys::PERFRING_RECORD_MMAP2 {
                    if let Some(map) = decoded.map() {
                        ip = map.addr;
                        text = map.filename;
                    }
                }
                period = decoded.lost().unwrap_or(0);
            }
            Err(error) => why = Some(error),
        }
    } else if let Some(format) = format {
        match record.sample(format, &mut buffers.sample) {
            Ok(sample) => {
                pid = sample.pid().unwrap_or(0);
                tid = sample.tid().unwrap_or(0);
                ip = sample.ip().unwrap_or(0);
                period = sample.period().unwrap_or(0);
                for frame in sample.frames() {
                    chain = chain.wrapping_add(frame.ip ^ frame.context);
                }
                for (i, word) in sample.callchain().into_iter().flatten().enumerate() {
                    chain = chain.wrapping_add(word.wrapping_mul(i as u64 + 1));
                }
                raw = sample.raw().unwrap_or(&[]).iter().map(|&byte| u64::from(byte)).sum();
            }
            Err(error) => why = Some(error),
        }
    }
    if let Some(error) = why {
        let fault = error.fault().unwrap_or_default();
        return writeln!(out, "damaged {} {} {} {}", record.kind(), error.code(), fault.at, fault.what);
    }
    write!(
        out,
        "{} {} {time} {pid} {tid} {ip:#x} {period} {chain:#x} {raw} ",
        record.name().unwrap_or("unknown"),
        format.map_or(-1, |format| i64::from(format.index())),
    )?;
    out.write_all(text)?;
    out.write_all(b"\n")
}

fn ended(out: &mut Out, how: &str, error: Option<Error>) -> io::Result<()> {
    match error.map(|error| (error.code(), error.fault())) {
        None => writeln!(out, "{how} 0"),
        Some((code, None)) => writeln!(out, "{how} {code}"),
        Some((code, Some(fault))) => writeln!(out, "{how} {code} {} {}", fault.at, fault.what),
    }
}

fn of_file(out: &mut Out, buffers: &mut Buffers, path: &str) -> io::Result<()> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return ended(out, "open", Some(error)),
    };
    let end = loop {
        match file.next_item() {
            Ok(Some(item)) => print(out, buffers, item.record(), item.format(), item.time())?,
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    for i in 0..file.event_count() {
        write!(out, "event {i} ")?;
        out.write_all(file.event_name(i).unwrap_or(b""))?;
        out.write_all(b"\n")?;
    }
    ended(out, "end", end)
}

fn own() -> Format {
    Format::new(
        sys::PERFRING_SAMPLE_IP
            | sys::PERFRING_SAMPLE_TID
            | sys::PERFRING_SAMPLE_TIME
            | sys::PERFRING_SAMPLE_PERIOD
            | sys::PERFRING_SAMPLE_CALLCHAIN
            | sys::PERFRING_SAMPLE_RAW,
    )
}

fn put(writer: &mut Writer, format: &Format, i: u64) -> bool {
    let words: Vec<u64> = (0..8).map(|k| if k > 0 { i * 31 + k } else { sys::PERFRING_CONTEXT_USER as u64 }).collect();
    let bytes: Vec<u8> = (0..13).map(|k| (i + k) as u8).collect();
    let sample = NewSample {
        misc: sys::PERFRING_RECORD_MISC_USER,
        ip: i * 4099,
        pid: 1,
        tid: (i % 7) as u32,
        time: i * 10 + 1,
        period: i ^ 0x55,
        callchain: &words[..(i % 9).min(8) as usize],
        raw: &bytes[..(i % 14) as usize],
        ..NewSample::default()
    };
    writer.put(format, &sample).is_ok()
}

fn drain(out: &mut Out, buffers: &mut Buffers, reader: &mut Reader, format: &Format) -> io::Result<()> {
    let end = match reader.observe() {
        Err(error) => Some(error),
        Ok(_) => loop {
            match reader.next_record() {
                Ok(Some(record)) => print(out, buffers, record, Some(format), record.time(format))?,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        },
    };
    if end.is_some() {
        ended(out, "corrupt", end)?;
    }
    reader.return_space();
    Ok(())
}

fn of_ring(out: &mut Out, buffers: &mut Buffers) -> Result<(), Box<dyn std::error::Error>> {
    let format = own();
    let ring = Ring::create(&RingOptions { pages: 16, ..RingOptions::default() })?;
    let mut writer = ring.writer()?;
    let mut reader = ring.reader()?;
    let mut accepted = 0;

    assert_eq!(ring.writer().err(), Some(Error::Busy));
    // A claim that is not committed leaves nothing.
    assert_eq!(writer.reserve(64).map(|mut claim| claim.bytes().len()), Some(64));
    for i in 0..20000 {
        accepted += i32::from(put(&mut writer, &format, i));
        if i % 700 == 699 {
            drain(out, buffers, &mut reader, &format)?;
        }
    }
    drain(out, buffers, &mut reader, &format)?;
    writeln!(out, "accepted {accepted}")?;
    Ok(())
}

fn attach(out: &mut Out, buffers: &mut Buffers, path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
    match Ring::attach(&file, 0) {
        Ok(ring) => drain(out, buffers, &mut ring.reader()?, &own())?,
        Err(error) => ended(out, "attach", Some(error))?,
    }
    Ok(())
}

fn of_session(out: &mut Out, buffers: &mut Buffers, path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
    let ring = Ring::attach(&file, 0)?;
    let mut session = Session::open(0)?;
    let (event, number) = (session.describe_ring(&ring)?, session.add_ring(&ring)?);

    writeln!(out, "event {event}, ring {number}")?;
    let error = session.describe_ring(&ring).unwrap_err();
    writeln!(out, "once more {} {}", error.code(), session.refusal())?;
    session.flush();
    while let Some(item) = session.next_item()? {
        print(out, buffers, item.record(), item.format(), item.time())?;
    }
    session.return_space();
    let totals = session.totals();
    writeln!(out, "end 0, {} records, {} samples", totals.records, totals.samples)?;
    Ok(())
}

fn now() -> u64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        ns: i64,
    }
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    let mut time = Timespec { seconds: 0, ns: 0 };
    // SAFETY: it writes the struct.
    unsafe { clock_gettime(2, &mut time) }; // CLOCK_PROCESS_CPUTIME_ID
    time.seconds as u64 * 1_000_000_000 + time.ns as u64
}

fn sum_up(out: &mut Out, path: &str, passes: u32) -> Result<(), Box<dyn std::error::Error>> {
    let (mut sum, mut least) = (0u64, u64::MAX);
    let mut buffer = SampleBuffer::new();

    for _ in 0..passes {
        let begin = now();
        sum = 0;
        let mut file = File::open(path)?;
        while let Some(item) = file.next_item()? {
            if item.record().is_sample() {
                if let Ok(sample) = item.sample(&mut buffer) {
                    sum = sum.wrapping_add(sample.period().unwrap_or(0));
                }
            }
        }
        drop(file);
        least = least.min(now() - begin);
    }
    writeln!(out, "{sum} {least}")?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let stdout = io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let mut buffers = Buffers { sample: SampleBuffer::new(), record: RecordBuffer::new() };

    match arguments[..] {
        ["file", ref paths @ ..] if !paths.is_empty() => {
            for path in paths {
                of_file(&mut out, &mut buffers, path)?;
            }
        }
        ["ring"] => of_ring(&mut out, &mut buffers)?,
        ["attach", path] => attach(&mut out, &mut buffers, path)?,
        ["session", path] => of_session(&mut out, &mut buffers, path)?,
        ["sum", path, passes] => sum_up(&mut out, path, passes.parse()?)?,
        _ => {
            eprintln!("usage: conformance file FILE... | ring | attach FILE | session FILE | sum FILE PASSES");
            std::process::exit(2);
        }
    }
    out.flush()?;
    Ok(())
}
