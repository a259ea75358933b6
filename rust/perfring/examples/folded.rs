//! folded.rs - the stacks of a perf.data file with names, folded for flame graphs: "COMM;main;function 1" for each sample.
use perfring::{File, Names, SampleBuffer};
use std::io::{BufWriter, Write};

fn fold(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = File::open(path)?;
    let mut names = Names::open(Some(&file))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut buffer = SampleBuffer::new();

    while let Some(item) = file.next_item()? {
        if !item.record().is_sample() {
            names.take(&item)?;
            continue;
        }
        let sample = item.sample(&mut buffer)?;
        if let (Some(tid), Some(_)) = (sample.tid(), sample.callchain()) {
            out.write_all(names.comm(tid).unwrap_or(b"[unknown]"))?;
            for named in names.stack(&sample)?.iter().rev() {
                out.write_all(b";")?;
                out.write_all(named.name.unwrap_or(b"[unknown]"))?;
            }
            out.write_all(b" 1\n")?;
        }
    }
    out.flush()?;
    Ok(())
}

fn main() {
    let path = match std::env::args().nth(1) {
        Some(path) => path,
        None => {
            eprintln!("usage: folded FILE");
            std::process::exit(2);
        }
    };
    if let Err(error) = fold(&path) {
        eprintln!("folded: {path}: {error}");
        std::process::exit(1);
    }
}
