//! read_perf_data.rs - the samples of a perf.data file: event, thread's name, address.
use perfring::{File, RecordBuffer, SampleBuffer};
use std::collections::HashMap;
use std::io::{BufWriter, Write};

fn read(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = File::open(path)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut comms: HashMap<u32, Vec<u8>> = HashMap::new();
    let (mut sample, mut record) = (SampleBuffer::new(), RecordBuffer::new());

    while let Some(item) = file.next_item()? {
        if !item.record().is_sample() {
            let record = item.decode(&mut record)?;
            if let Some(comm) = record.comm() {
                comms.insert(comm.tid, comm.comm.to_vec());
            } else if let Some(task) = record.fork() {
                if let Some(comm) = comms.get(&task.ptid).cloned() {
                    comms.insert(task.tid, comm); // until it has a name of its own
                }
            }
        } else if item.format().is_some() {
            let sample = item.sample(&mut sample)?;
            let comm =
                sample.tid().and_then(|tid| comms.get(&tid)).map_or("[unknown]".into(), |comm| String::from_utf8_lossy(comm));
            let event = String::from_utf8_lossy(item.event_name().unwrap_or(b"[unknown]"));
            writeln!(out, "{event} {comm} {:#x}", sample.ip().unwrap_or(0))?;
        }
    }
    out.flush()?;
    Ok(())
}

fn main() {
    let path = match std::env::args().nth(1) {
        Some(path) => path,
        None => {
            eprintln!("usage: read_perf_data FILE");
            std::process::exit(2);
        }
    };
    if let Err(error) = read(&path) {
        eprintln!("read_perf_data: {path}: {error}");
        std::process::exit(1);
    }
}
