//! Containers as processes of this machine: every test as whoever runs this, as an ordinary user where that is root, and
//! where the machine allows no namespaces.
//!
//! A program of its own instead of libtest's, because it is the launcher too: that must have one thread.
#![expect(clippy::print_stdout, reason = "it tells what was tested")]

mod attaching;
mod ends;
mod escapes;
mod files;
mod logs;
mod running;
mod support;

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use futures::future::BoxFuture;
use kubewright_kubelet::container::helper;

/// Any user but root, on any machine.
const NOBODY: u32 = 65534;

/// Says that this process is a further round, and what round that is.
const AGAIN: &str = "--again";

/// Says that this process is a runtime that is to be killed.
pub(crate) const RUN: &str = "--run";

/// How long a test may take: they wait for events, which would not come.
const PATIENCE: Duration = Duration::from_secs(60);

type Test = (&'static str, fn() -> BoxFuture<'static, ()>);

/// Names tests.
macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        const TESTS: &[Test] =
            &[$((concat!(stringify!($module), "::", stringify!($name)), || Box::pin($module::$name()))),*];
    };
}

tests![
    escapes::what_became_a_link_out_of_its_volume_is_not_mounted,
    escapes::a_neighbour_that_is_fast_shows_a_container_nothing_outside_of_its_volume,
    escapes::a_neighbour_that_is_fast_makes_nothing_writable,
    escapes::a_mount_point_is_never_what_a_process_has_open,
    escapes::a_working_directory_is_never_what_a_process_has_open,
    escapes::what_is_open_where_the_runtime_was_started_is_not_open_in_a_container,
    running::a_program_runs_and_its_exit_code_is_told,
    running::kernel_parameters_are_the_containers_own,
    running::what_cannot_be_started_is_told_in_the_words_of_runc,
    files::what_a_container_writes_to_the_machine_it_alone_sees,
    files::a_command_of_the_machine_sees_mounts_where_there_is_nothing,
    files::an_image_is_a_root_of_its_own_with_processes_devices_and_a_name,
    files::an_image_is_shared_and_never_written_to,
    files::mounts_are_seen_where_they_are_wanted,
    files::a_container_is_the_user_that_it_asks_for,
    files::a_working_directory_is_made_where_it_is_missing,
    logs::a_log_is_in_the_format_of_the_cri,
    logs::following_ends_with_the_container_and_misses_nothing,
    logs::a_follower_survives_rotation_and_old_files_go,
    logs::a_container_that_nobody_reads_does_not_wait,
    attaching::a_command_runs_beside_the_program_in_its_namespaces,
    attaching::a_command_reads_its_input_to_the_end,
    attaching::a_command_that_cannot_start_is_told_in_the_words_of_runc,
    attaching::a_command_ends_at_its_time_and_with_its_session,
    attaching::a_terminal_has_a_size_and_takes_keys,
    attaching::several_are_attached_at_once_and_the_first_who_leaves_ends_the_input,
    attaching::a_program_on_a_terminal_writes_one_stream,
    ends::a_program_decides_what_a_signal_does,
    ends::the_first_process_hears_no_signal_that_it_does_not_handle,
    ends::all_processes_end_with_the_first,
    ends::closing_a_runtime_ends_its_containers_and_starts_no_more,
    ends::names_are_given_once_and_are_plain,
    ends::containers_do_not_outlive_a_runtime_that_is_killed,
];

fn main() -> ExitCode {
    if let Some(code) = helper::called_as(env::args_os()) {
        return code;
    }
    if let Some(word) = env::args().skip_while(|argument| argument != RUN).nth(1) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(ends::start_and_wait(&word));
        return ExitCode::SUCCESS;
    }
    let round = env::args().skip_while(|argument| argument != AGAIN).nth(1);
    let words = env::args().skip(1).take_while(|argument| argument != AGAIN);
    let names: Vec<String> = words.filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str()));
    let mut passed = true;
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        passed &= passes(name, *test, round.as_deref());
    }
    if round.is_none() {
        passed &= !rustix::process::geteuid().is_root() || as_ordinary_user(&names);
        passed &= without_namespaces(&names);
        passed &= in_the_background_of_a_script(&names);
    }
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn passes(name: &str, test: fn() -> BoxFuture<'static, ()>, round: Option<&str>) -> bool {
    let round = round.map(|round| format!(" ({round})")).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        let outcome = runtime.block_on(async { tokio::time::timeout(PATIENCE, tokio::spawn(test())).await });
        outcome.map_err(|late| late.to_string()).and_then(|ended| ended.map_err(|error| error.to_string()))
    });
    match &outcome {
        Ok(()) => println!("test {name}{round} ... ok"),
        Err(error) => println!("test {name}{round} ... FAILED: {error}"),
    }
    outcome.is_ok()
}

/// Everything once more, by a copy of this program: the folder that it is in may be closed to others, as root's home is.
fn as_ordinary_user(names: &[String]) -> bool {
    let own = env::current_exe().expect("its own name");
    let copy = env::temp_dir().join(format!("kubewright-process-{}", std::process::id()));
    std::fs::copy(own, &copy).expect("a copy");
    let mut command = Command::new(&copy);
    command.args(names).args([AGAIN, "as an ordinary user"]).gid(NOBODY).uid(NOBODY).current_dir("/");
    let status = command.status();
    std::fs::remove_file(copy).expect("it is removed");
    status.expect("an ordinary user may run this").success()
}

/// What depends on signals once more, where a script has started this with `&`, and so with some ignored.
fn in_the_background_of_a_script(names: &[String]) -> bool {
    const TEST: &str = "attaching::a_terminal_has_a_size_and_takes_keys";
    if !names.is_empty() && !names.iter().any(|name| TEST.contains(name.as_str())) {
        return true;
    }
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP INT QUIT && exec \"$@\"", "sh"]);
    command.arg(env::current_exe().expect("its own name")).args([
        TEST,
        AGAIN,
        "in the background of a script",
    ]);
    command.status().expect("there is a shell").success()
}

/// Everything once more, where the machine allows no namespaces: in a user namespace that may have no others, and whose
/// root may do nothing.
fn without_namespaces(names: &[String]) -> bool {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces \
        && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]);
    command.arg(env::current_exe().expect("its own name")).args(names).args([AGAIN, "without namespaces"]);
    match command.current_dir("/").status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("SKIPPED: the round without namespaces needs unshare and setpriv: {error}");
            true
        }
    }
}
