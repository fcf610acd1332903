//! What the kernel says of this process. Everything is `None` where `/proc` is missing.

use std::fs;

/// Resident memory in bytes. The kernel multiplies pages itself in this file, so no page size is assumed.
pub fn resident_bytes() -> Option<u64> {
    vm_rss(&fs::read_to_string("/proc/self/status").ok()?)
}

fn vm_rss(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Processor time used so far in microseconds: in user code, in the kernel.
pub fn cpu_micros() -> Option<(u64, u64)> {
    cpu_ticks(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    // The command name is in parentheses and may hold anything; the fields after it are the 3rd and later.
    let fields = stat.get(stat.rfind(')')? + 1..)?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    // Ticks of user space are 1/100 s on every architecture that Linux serves today.
    Some((user * 10_000, system * 10_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_process() {
        let rss = resident_bytes().unwrap();
        assert!((1 << 20..1 << 36).contains(&rss), "{rss}");
        assert!(cpu_micros().is_some());
    }

    #[test]
    fn survives_odd_files() {
        assert_eq!(vm_rss("VmPeak:\t 12 kB\nVmRSS:\t   646 kB\n"), Some(646 * 1024));
        assert_eq!(vm_rss("VmRSS: many kB"), None);
        assert_eq!(vm_rss(""), None);
        assert_eq!(cpu_ticks("12 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0"), Some((2_500_000, 500_000)));
        assert_eq!(cpu_ticks("12 (a"), None);
    }
}
