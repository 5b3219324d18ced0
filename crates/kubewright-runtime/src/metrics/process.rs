//! What the process uses, as Linux tells it: `process_*` of Prometheus' own client (`process_collector.go` of client_golang).

use std::fs;

use parking_lot::Mutex;
use prometheus::{
    Counter, Gauge,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// How many ticks a second has in `/proc` (`USER_HZ`, which is a constant of the system's interface).
const TICKS: f64 = 100.0;

/// What one reading found; what cannot be read is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Usage {
    cpu_seconds: Option<f64>,
    start_seconds: Option<f64>,
    virtual_bytes: Option<f64>,
    resident_bytes: Option<f64>,
    open_files: Option<f64>,
    max_files: Option<f64>,
    max_virtual_bytes: Option<f64>,
}

/// Reads `/proc/self` whenever it is asked. On other systems nothing is told.
pub(super) struct Process {
    cpu: Counter,
    start: Gauge,
    virtual_memory: Gauge,
    resident_memory: Gauge,
    open_files: Gauge,
    max_files: Gauge,
    max_virtual_memory: Gauge,
    /// Held while the metrics are brought up to date: a counter can only be added to.
    reading: Mutex<()>,
}

impl Process {
    pub(super) fn new() -> Self {
        let gauge = |name: &str, help: &str| Gauge::new(name, help).expect("a valid name");
        Self {
            cpu: Counter::new(
                "process_cpu_seconds_total",
                "Total user and system CPU time spent in seconds.",
            )
            .expect("a valid name"),
            start: gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
            ),
            virtual_memory: gauge("process_virtual_memory_bytes", "Virtual memory size in bytes."),
            resident_memory: gauge("process_resident_memory_bytes", "Resident memory size in bytes."),
            open_files: gauge("process_open_fds", "Number of open file descriptors."),
            max_files: gauge("process_max_fds", "Maximum number of open file descriptors."),
            max_virtual_memory: gauge(
                "process_virtual_memory_max_bytes",
                "Maximum amount of virtual memory available in bytes.",
            ),
            reading: Mutex::default(),
        }
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        let gauges = [
            &self.start,
            &self.virtual_memory,
            &self.resident_memory,
            &self.open_files,
            &self.max_files,
            &self.max_virtual_memory,
        ];
        self.cpu.desc().into_iter().chain(gauges.into_iter().flat_map(Collector::desc)).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _one_at_a_time = self.reading.lock();
        let usage = read();
        let mut families = Vec::new();
        if let Some(seconds) = usage.cpu_seconds {
            self.cpu.inc_by((seconds - self.cpu.get()).max(0.0));
            families.extend(self.cpu.collect());
        }
        let gauges = [
            (&self.start, usage.start_seconds),
            (&self.virtual_memory, usage.virtual_bytes),
            (&self.resident_memory, usage.resident_bytes),
            (&self.open_files, usage.open_files),
            (&self.max_files, usage.max_files),
            (&self.max_virtual_memory, usage.max_virtual_bytes),
        ];
        for (gauge, value) in gauges {
            if let Some(value) = value {
                gauge.set(value);
                families.extend(gauge.collect());
            }
        }
        families
    }
}

fn read() -> Usage {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut usage = Usage::default();
    usage.of_stat(&text("/proc/self/stat"), &text("/proc/stat"));
    usage.of_status(&text("/proc/self/status"));
    usage.of_limits(&text("/proc/self/limits"));
    usage.open_files = fs::read_dir("/proc/self/fd").ok().map(|files| count(files.count()));
    usage
}

/// Exact up to 2^53, which is more than a machine has.
#[expect(clippy::cast_precision_loss, reason = "no machine has that much")]
fn count(number: usize) -> f64 {
    number as f64
}

impl Usage {
    /// From `/proc/<pid>/stat`, whose second field is a name in parentheses that may hold anything, and the time of the
    /// machine's start from `/proc/stat`.
    fn of_stat(&mut self, stat: &str, system: &str) {
        let Some((_, rest)) = stat.rsplit_once(')') else { return };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // `rest` begins with the third field of proc(5).
        let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<f64>().ok());
        self.cpu_seconds = field(14).zip(field(15)).map(|(user, system)| (user + system) / TICKS);
        self.virtual_bytes = field(23);
        let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
        self.start_seconds = booted.zip(field(22)).map(|(booted, started)| booted + started / TICKS);
    }

    /// From `/proc/<pid>/status`, which counts in kilobytes; `stat` counts in pages of an unknown size.
    fn of_status(&mut self, status: &str) {
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes =
            resident.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
        self.resident_bytes = kilobytes.map(|kilobytes| kilobytes * 1024.0);
    }

    /// From `/proc/<pid>/limits`. Without a limit it is the largest number there is, as client_golang says it.
    fn of_limits(&mut self, limits: &str) {
        let soft = |name: &str| {
            let value =
                limits.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()?;
            if value == "unlimited" { Some(count(usize::MAX)) } else { value.parse().ok() }
        };
        self.max_files = soft("Max open files");
        self.max_virtual_bytes = soft("Max address space");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read_whatever_the_program_is_called() {
        let stat =
            "42 (a) b (c)) S 1 42 42 0 -1 4194304 2000 0 0 0 150 50 0 0 20 0 4 0 12345 1000000 250 1 1";
        let mut usage = Usage::default();
        usage.of_stat(stat, "cpu 1 2\nbtime 1700000000\n");
        usage.of_status("Name:\tx\nVmRSS:\t    1000 kB\n");
        usage.of_limits(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max open files            1024                 4096                 files     \n\
             Max address space         unlimited            unlimited            bytes     \n",
        );
        assert_eq!(usage.cpu_seconds, Some(2.0));
        assert_eq!(usage.start_seconds, Some(1_700_000_123.45));
        assert_eq!((usage.virtual_bytes, usage.resident_bytes), (Some(1_000_000.0), Some(1_024_000.0)));
        assert_eq!(usage.max_files, Some(1024.0));
        assert!(usage.max_virtual_bytes.is_some_and(|bytes| bytes > 1e19));
    }

    #[test]
    fn what_cannot_be_read_is_not_told() {
        let mut usage = Usage::default();
        usage.of_stat("", "");
        usage.of_stat("1 (x) S", "btime soon");
        usage.of_status("VmRSS: many kB");
        usage.of_limits("Max open files");
        assert_eq!(usage, Usage::default());
    }
}
