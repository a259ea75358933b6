//! conformance.rs - what conformance.c says, by the crate perfring: see there.
use perfring::{
    sys, Decoded, Error, File, Format, Item, NewSample, Reader, Record, RecordBuffer, Ring, RingOptions, Sample, SampleBuffer,
    Session, Writer,
};
use std::io::{self, BufWriter, StdoutLock, Write};

type Out<'a> = BufWriter<StdoutLock<'a>>;

struct Buffers {
    sample: SampleBuffer,
    record: RecordBuffer,
}

fn number(out: &mut Out, name: &str, number: Option<u32>) -> io::Result<()> {
    number.map_or(Ok(()), |number| write!(out, " {name}={}", number as i32))
}

fn word(out: &mut Out, name: &str, word: Option<u64>) -> io::Result<()> {
    word.map_or(Ok(()), |word| write!(out, " {name}={word}"))
}

fn sum_of(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, |sum, word| sum.wrapping_mul(31).wrapping_add(word))
}

fn bytes(out: &mut Out, name: &str, bytes: Option<&[u8]>) -> io::Result<()> {
    bytes.map_or(Ok(()), |bytes| write!(out, " {name}={}/{}", bytes.len(), sum_of(bytes.iter().copied().map(u64::from))))
}

fn text(out: &mut Out, name: &str, text: &[u8]) -> io::Result<()> {
    write!(out, " {name}=")?;
    out.write_all(text)
}

fn print_sample(out: &mut Out, sample: Sample) -> io::Result<()> {
    number(out, "pid", sample.pid())?;
    number(out, "tid", sample.tid())?;
    number(out, "cpu", sample.cpu())?;
    word(out, "time", sample.time())?;
    word(out, "ip", sample.ip())?;
    word(out, "addr", sample.addr())?;
    word(out, "period", sample.period())?;
    if let Some(words) = sample.callchain() {
        write!(out, " callchain={}/{}", words.len(), sum_of(words))?;
    }
    word(out, "identifier", sample.identifier())?;
    word(out, "id", sample.id())?;
    word(out, "stream_id", sample.stream_id())?;
    word(out, "weight", sample.weight())?;
    word(out, "data_src", sample.data_src())?;
    word(out, "transaction", sample.transaction())?;
    word(out, "phys_addr", sample.phys_addr())?;
    word(out, "cgroup", sample.cgroup())?;
    word(out, "data_page_size", sample.data_page_size())?;
    word(out, "code_page_size", sample.code_page_size())?;
    write!(out, " present={} misc={}", sample.present(), sample.misc())?;
    bytes(out, "raw", sample.raw())?;
    bytes(out, "stack", sample.stack())?;
    if let Some(weight) = sample.weight_struct() {
        write!(out, " weight_struct={}/{}/{}", weight.var1, weight.var2, weight.var3)?;
    }
    if sample.has(sys::PERFRING_SAMPLE_CALLCHAIN) {
        let mut frames = sample.frames();
        let (mut nr, mut sum) = (0u64, 0u64);
        for frame in &mut frames {
            sum = sum.wrapping_mul(31).wrapping_add(frame.context).wrapping_mul(31).wrapping_add(frame.ip);
            nr += 1;
        }
        write!(out, " frames={nr}/{sum}")?;
        if let Some(fault) = frames.status().err().and_then(|error| error.fault()) {
            write!(out, " at {} {}", fault.at, fault.what)?;
        }
    }
    Ok(())
}

fn print_thread(out: &mut Out, record: Decoded) -> io::Result<()> {
    let task = record.fork().or_else(|| record.exit());
    let thread = (record.comm().map(|comm| (comm.pid, comm.tid)))
        .or_else(|| task.map(|task| (task.pid, task.tid)))
        .or_else(|| record.map().map(|map| (map.pid, map.tid)))
        .or_else(|| record.thread());
    number(out, "pid", thread.map(|thread| thread.0))?;
    number(out, "tid", thread.map(|thread| thread.1))?;
    number(out, "cpu", record.cpu())
}

fn print_members(out: &mut Out, record: Decoded) -> io::Result<()> {
    if let Some(comm) = record.comm() {
        text(out, "comm", comm.comm)?;
    }
    if let Some(task) = record.fork().or_else(|| record.exit()) {
        write!(out, " ppid={} ptid={} time={}", task.ppid, task.ptid, task.time)?;
    }
    if let Some(map) = record.map() {
        write!(out, " addr={} len={} pgoff={}", map.addr, map.len, map.pgoff)?;
        bytes(out, "build_id", map.build_id)?;
        text(out, "filename", map.filename)?;
    }
    word(out, "lost", record.lost())
}

/// What a line is of.
struct Line<'a> {
    record: Record<'a>,
    format: Option<&'a Format>,
    time: u64,
    event: Option<&'a [u8]>, // its name
}

impl<'a> Line<'a> {
    fn of(item: &Item<'a>) -> Line<'a> {
        Line { record: item.record(), format: item.format(), time: item.time(), event: item.event_name() }
    }
}

fn print(out: &mut Out, buffers: &mut Buffers, line: Line) -> io::Result<()> {
    let (record, format) = (line.record, line.format);
    let sample = match format {
        Some(format) if record.is_sample() => Some(record.sample(format, &mut buffers.sample)),
        _ => None,
    };
    let other = (!record.is_sample()).then(|| record.decode(format, &mut buffers.record));
    let why = sample
        .as_ref()
        .and_then(|sample| sample.as_ref().err())
        .or_else(|| other.as_ref().and_then(|other| other.as_ref().err()));
    if let Some(why) = why {
        let fault = why.fault().unwrap_or_default();
        return writeln!(out, "damaged {} {} {} {}", record.kind(), why.code(), fault.at, fault.what);
    }
    match record.name() {
        Some(name) => write!(out, "{name}")?,
        None => write!(out, "{}", record.kind())?,
    }
    write!(out, " at={} size={}", line.time, record.bytes().len())?;
    if let Some(Ok(other)) = other {
        print_thread(out, other)?;
    }
    match (line.event, format) {
        (Some(name), _) => text(out, "event", name)?,
        (None, Some(format)) => write!(out, " event={}", format.index())?,
        (None, None) => {}
    }
    if let Some(Ok(sample)) = sample {
        print_sample(out, sample)?;
    }
    if let Some(Ok(other)) = other {
        print_members(out, other)?;
    }
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
            Ok(Some(item)) => print(out, buffers, Line::of(&item))?,
            Ok(None) => break None,
            Err(error) => match file.damaged() {
                Some(record) => {
                    write!(out, "skipped {} {}, ", record.kind(), record.bytes().len())?;
                    ended(out, "why", Some(error))?;
                }
                None => break Some(error),
            },
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
                Ok(Some(record)) => {
                    let time = record.time(format);
                    print(out, buffers, Line { record, format: Some(format), time, event: None })?;
                }
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
        print(out, buffers, Line::of(&item))?;
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
