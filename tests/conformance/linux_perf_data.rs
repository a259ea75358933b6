//! linux_perf_data.rs - what Rust's crate linux-perf-data reads of vectors of the conformance suite: a line of JSON for each file.

use linux_perf_data::linux_perf_event_reader::{
    ContextSwitchRecord, EventRecord, Mmap2FileId, RawDataU64, Regs, SampleRecord, TaskWasPreempted,
};
use linux_perf_data::{Error, PerfFileReader, PerfFileRecord, UserRecord};
use std::fmt::Write;

fn text(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            0x20..=0x7e if *byte != b'"' && *byte != b'\\' => out.push(*byte as char),
            _ => write!(out, "\\u{byte:04x}").unwrap(),
        }
    }
    out + "\""
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("\""), |out, byte| format!("{out}{byte:02x}")) + "\""
}

fn word(number: u64) -> String {
    format!("\"{number:#x}\"")
}

fn words(words: &RawDataU64) -> String {
    let list: Vec<String> = (0..words.len()).map(|i| word(words.get(i).unwrap())).collect();
    format!("[{}]", list.join(","))
}

fn object(parts: Vec<(&str, String)>) -> String {
    let list: Vec<String> = parts.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", list.join(","))
}

fn regs(regs: &Regs) -> String {
    let list: Vec<String> = (0..64).filter_map(|bit| regs.get(bit)).map(word).collect();
    format!("[{}]", list.join(","))
}

fn sample(sample: &SampleRecord) -> String {
    let mut parts = vec![];
    let numbers = [
        ("ip", sample.ip),
        ("time", sample.timestamp),
        ("addr", sample.addr),
        ("id", sample.id),
        ("stream_id", sample.stream_id),
        ("period", sample.period),
        ("phys_addr", sample.phys_addr),
        ("data_page_size", sample.data_page_size),
        ("code_page_size", sample.code_page_size),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            parts.push((key, word(number)));
        }
    }
    for (key, number) in [("pid", sample.pid), ("tid", sample.tid)] {
        if let Some(number) = number {
            parts.push((key, (number as u32).to_string()));
        }
    }
    if let Some(cpu) = sample.cpu {
        parts.push(("cpu", cpu.to_string()));
    }
    if let Some(chain) = &sample.callchain {
        parts.push(("callchain", words(chain)));
    }
    if let Some(raw) = &sample.raw {
        parts.push(("raw", hex(&raw.as_slice())));
    }
    if let Some(user) = &sample.user_regs {
        parts.push(("regs_user", regs(user)));
    }
    if let Some((stack, size)) = &sample.user_stack {
        parts.push(("stack_user", object(vec![("bytes", hex(&stack.as_slice())), ("dyn_size", word(*size))])));
    }
    object(parts)
}

fn members(record: &EventRecord) -> String {
    let number = |number: i32| (number as u32).to_string();
    object(match record {
        EventRecord::Sample(of) => return sample(of),
        EventRecord::Comm(of) => vec![
            ("pid", number(of.pid)),
            ("tid", number(of.tid)),
            ("comm", text(&of.name.as_slice())),
            ("exec", of.is_execve.to_string()),
        ],
        EventRecord::Exit(of) | EventRecord::Fork(of) => vec![
            ("pid", number(of.pid)),
            ("ppid", number(of.ppid)),
            ("tid", number(of.tid)),
            ("ptid", number(of.ptid)),
            ("time", word(of.timestamp)),
        ],
        EventRecord::Mmap(of) => vec![
            ("pid", number(of.pid)),
            ("tid", number(of.tid)),
            ("addr", word(of.address)),
            ("len", word(of.length)),
            ("pgoff", word(of.page_offset)),
            ("executable", of.is_executable.to_string()),
            ("filename", text(&of.path.as_slice())),
        ],
        EventRecord::Mmap2(of) => vec![
            ("pid", number(of.pid)),
            ("tid", number(of.tid)),
            ("addr", word(of.address)),
            ("len", word(of.length)),
            ("pgoff", word(of.page_offset)),
            (
                "file",
                match &of.file_id {
                    Mmap2FileId::BuildId(id) => object(vec![("build_id", hex(id))]),
                    Mmap2FileId::InodeAndVersion(id) => object(vec![
                        ("maj", id.major.to_string()),
                        ("min", id.minor.to_string()),
                        ("ino", word(id.inode)),
                        ("ino_generation", word(id.inode_generation)),
                    ]),
                },
            ),
            ("prot", of.protection.to_string()),
            ("flags", of.flags.to_string()),
            ("filename", text(&of.path.as_slice())),
        ],
        EventRecord::Lost(of) => vec![("id", word(of.id)), ("lost", word(of.count))],
        EventRecord::Throttle(of) | EventRecord::Unthrottle(of) => {
            vec![("time", word(of.timestamp)), ("id", word(of.id))]
        }
        EventRecord::ContextSwitch(of) => {
            let (out, preempted, pid, tid) = match of {
                ContextSwitchRecord::In { prev_pid, prev_tid } => (false, false, prev_pid, prev_tid),
                ContextSwitchRecord::Out { next_pid, next_tid, preempted } => {
                    (true, matches!(preempted, TaskWasPreempted::Yes), next_pid, next_tid)
                }
            };
            let mut parts = vec![("out", out.to_string()), ("preempted", preempted.to_string())];
            if let (Some(pid), Some(tid)) = (pid, tid) {
                parts.push(("next_prev_pid", number(*pid)));
                parts.push(("next_prev_tid", number(*tid)));
            }
            parts
        }
        _ => vec![],
    })
}

fn put_string(features: &mut Vec<(&str, String)>, key: &'static str, value: Result<Option<&str>, Error>) {
    if let Ok(Some(value)) = value {
        features.push((key, text(value.as_bytes())));
    }
}

fn read(path: &str, records: &mut Vec<String>) -> Result<String, Error> {
    let file = std::io::BufReader::new(std::fs::File::open(path)?);
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(file)?;
    let events: Vec<String> = perf_file
        .event_attributes()
        .iter()
        .map(|event| {
            let attr = event.attributes();
            let ids: Vec<String> = event.ids().iter().map(|id| word(*id)).collect();
            object(vec![
                ("sample_type", word(attr.sample_format.bits())),
                ("flags", word(attr.flags.bits())),
                ("ids", format!("[{}]", ids.join(","))),
            ])
        })
        .collect();
    let mut features = vec![];
    put_string(&mut features, "HOSTNAME", perf_file.hostname());
    put_string(&mut features, "OSRELEASE", perf_file.os_release());
    put_string(&mut features, "VERSION", perf_file.perf_version());
    put_string(&mut features, "ARCH", perf_file.arch());
    put_string(&mut features, "CPUDESC", perf_file.cpu_desc());
    put_string(&mut features, "CPUID", perf_file.cpu_id());
    if let Ok(Some(kilobytes)) = perf_file.total_mem() {
        features.push(("TOTAL_MEM", word(kilobytes)));
    }
    if let Ok(Some(cpus)) = perf_file.nr_cpus() {
        let list = format!("[{},{}]", cpus.nr_cpus_available, cpus.nr_cpus_online);
        features.push(("NRCPUS", list));
    }
    if let Ok(Some(range)) = perf_file.sample_time_range() {
        let list = format!("[{},{}]", word(range.first_sample_time), word(range.last_sample_time));
        features.push(("SAMPLE_TIME", list));
    }
    if let Ok(Some(line)) = perf_file.cmdline() {
        let list: Vec<String> = line.iter().map(|word| text(word.as_bytes())).collect();
        features.push(("CMDLINE", format!("[{}]", list.join(","))));
    }
    let head = format!("\"events\":[{}],\"features\":{}", events.join(","), object(features));
    let mut end = "whole";
    loop {
        let record = match record_iter.next_record(&mut perf_file) {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(_) => {
                end = "damaged";
                break;
            }
        };
        let mut parts = vec![];
        match record {
            PerfFileRecord::EventRecord { attr_index, record } => {
                parts.push(("type", record.record_type.0.to_string()));
                parts.push(("misc", record.misc.to_string()));
                parts.push(("size", (record.data.len() + 8).to_string()));
                parts.push(("event", attr_index.to_string()));
                match record.parse() {
                    Ok(parsed) => parts.push(("members", members(&parsed))),
                    Err(_) => parts.push(("damaged", "true".to_string())),
                }
            }
            PerfFileRecord::UserRecord(record) => {
                parts.push(("type", record.record_type.record_type().0.to_string()));
                parts.push(("misc", record.misc.to_string()));
                parts.push(("size", (record.data.len() + 8).to_string()));
                match record.parse() {
                    Ok(UserRecord::ThreadMap(map)) => {
                        let list: Vec<String> = map
                            .iter()
                            .map(|thread| {
                                object(vec![("pid", word(thread.tid)), ("comm", text(&thread.name.as_slice()))])
                            })
                            .collect();
                        parts.push(("members", object(vec![("threads", format!("[{}]", list.join(",")))])));
                    }
                    Ok(_) => parts.push(("members", "{}".to_string())),
                    Err(_) => parts.push(("damaged", "true".to_string())),
                }
            }
        }
        records.push(object(parts));
    }
    Ok(format!("{head},\"end\":\"{end}\""))
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    for path in std::env::args().skip(1) {
        let done = std::panic::catch_unwind(|| {
            let mut records = vec![];
            let head = read(&path, &mut records);
            (head, records)
        });
        match done {
            Ok((Ok(head), records)) => println!("{{{head},\"records\":[{}]}}", records.join(",")),
            Ok((Err(error), _)) => println!("{{\"error\":{}}}", text(error.to_string().as_bytes())),
            Err(_) => println!("{{\"error\":\"panic\"}}"),
        }
    }
}
