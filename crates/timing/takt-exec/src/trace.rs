//! Trace of the last jobs as a file for the trace viewers of Chrome and Perfetto.

use std::fmt;
use std::io;

use takt_schedule::TraceRecord;

/// Writes jobs in Chrome's trace event format, which `chrome://tracing` and Perfetto read: complete
/// events (`"ph":"X"`), times in microseconds. `thread` is the name of the thread; `name_of` names
/// each job.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_chrome<'a, N: fmt::Display>(
    mut out: impl io::Write,
    thread: &str,
    records: impl IntoIterator<Item = &'a TraceRecord>,
    name_of: impl Fn(&TraceRecord) -> N,
) -> io::Result<()> {
    let pid = std::process::id();
    write!(out, r#"{{"displayTimeUnit":"ns","traceEvents":[{{"ph":"M","name":"thread_name","pid":{pid},"tid":1,"#)?;
    write!(out, r#""args":{{"name":"{}"}}}}"#, Escaped(thread))?;
    for record in records {
        let TraceRecord { began_ns, duration_ns, kind, priority, .. } = *record;
        let name = name_of(record).to_string();
        write!(out, ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":1,\"cat\":\"{kind}\",\"name\":\"{}\",", Escaped(&name))?;
        write!(out, "\"ts\":{}.{:03},", began_ns / 1000, began_ns % 1000)?;
        write!(out, "\"dur\":{}.{:03},\"args\":{{\"priority\":{priority}}}}}", duration_ns / 1000, duration_ns % 1000)?;
    }
    out.write_all(b"]}\n")
}

/// Text escaped for a JSON string.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::fmt::Write;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                _ if character.is_control() => write!(f, "\\u{:04x}", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use takt_schedule::{JobKind, Priority};

    use super::*;

    #[test]
    fn chrome_trace_has_the_expected_format() {
        let mut out = Vec::new();
        let (kind, priority) = (JobKind::Timers, Priority::new(-3));
        let record = TraceRecord { began_ns: 1_234_567, duration_ns: 1_500, owner: 2, kind, priority };
        write_chrome(&mut out, "takt \"rx\"", &[record], |record| format!("a\n{}", record.owner)).expect("memory");
        let text = String::from_utf8(out).expect("text");
        let pid = std::process::id();
        assert_eq!(
            text,
            format!(
                "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{pid},\"tid\":1,\
                 \"args\":{{\"name\":\"takt \\\"rx\\\"\"}}}},\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":1,\"cat\":\"timers\",\
                 \"name\":\"a\\u000a2\",\"ts\":1234.567,\"dur\":1.500,\"args\":{{\"priority\":-3}}}}]}}\n"
            )
        );
    }
}
