//! How long each step of a task took, and what of the processors' time.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The steps that are done.
static STEPS: Mutex<Vec<Step>> = Mutex::new(Vec::new());

struct Step {
    what: String,
    wall: Duration,
    /// Of all processes that the step started and that have ended.
    cpu: Duration,
}

/// Does a step and notes what it took.
#[expect(clippy::disallowed_methods, reason = "what a contributor waits for is measured")]
pub(crate) fn timed<T>(what: &str, step: impl FnOnce() -> T) -> T {
    let (begun, used) = (Instant::now(), of_children());
    let done = step();
    let step = Step { what: what.to_owned(), wall: begun.elapsed(), cpu: of_children().saturating_sub(used) };
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    done
}

/// Prints the steps that took some seconds, and all of them together.
pub(crate) fn print() {
    const SHORT: Duration = Duration::from_secs(5);
    let steps = STEPS.lock().unwrap_or_else(PoisonError::into_inner);
    let sum = |of: fn(&Step) -> Duration| steps.iter().map(of).sum::<Duration>();
    let (wall, cpu) = (sum(|step| step.wall), sum(|step| step.cpu));
    if wall < SHORT {
        return;
    }
    eprintln!("\n== {:>8}{:>11}  step", "minutes", "CPU-min");
    for step in steps.iter().filter(|step| step.wall >= SHORT) {
        eprintln!("== {:>8.1}{:>11.1}  {}", minutes(step.wall), minutes(step.cpu), step.what);
    }
    eprintln!("== {:>8.1}{:>11.1}  all", minutes(wall), minutes(cpu));
}

fn minutes(time: Duration) -> f64 {
    time.as_secs_f64() / 60.0
}

/// The processors' time of all children that have ended, and theirs (`proc_pid_stat(5)`: `cutime`, `cstime`, in hundredths);
/// nothing where there is no `/proc`.
fn of_children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}
