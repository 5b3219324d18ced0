//! What a container said before it ended (`pkg/kubelet/kuberuntime/kuberuntime_container.go`): `terminationMessagePath` is a
//! file of each run, and where it stayed empty after a failure the end of the log may serve.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::place::Node;

/// The most bytes of a message; of a longer one the last count (`MaxContainerTerminationMessageLength`).
const LONGEST: u64 = 4096;

/// The most bytes of a log that serves as message (`MaxContainerTerminationMessageLogLength`).
const LONGEST_OF_LOG: usize = 2048;

/// The most entries of a log that serves as message (`MaxContainerTerminationMessageLogLines`).
const MOST_LINES: usize = 80;

/// How much of the end of a log is read for it: several times what these entries can take.
const END_OF_LOG: u64 = 256 * 1024;

/// The file of this machine that a run of a container sees at its `terminationMessagePath`.
pub(super) fn file(node: &Node, pod: &Pod, container: &Container, run: u32) -> PathBuf {
    node.pod_folder(pod).join("containers").join(&container.name).join(format!("{run:08x}"))
}

/// The message of a run that ended with `exit_code`: empty when it left none.
#[must_use]
pub fn read(node: &Node, pod: &Pod, container: &Container, run: u32, exit_code: i32) -> String {
    let path = container.termination_message_path.as_deref().unwrap_or_default();
    if !path.is_empty() {
        let file = file(node, pod, container, run);
        match last_bytes(&file, LONGEST) {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => return String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return format!("Error on reading termination log {}: {error}", file.display()),
        }
    }
    let of_log = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if !of_log || exit_code == 0 {
        return String::new();
    }
    match last_bytes(&node.log(pod, &container.name, run), END_OF_LOG) {
        Ok(bytes) => end_of_log(&String::from_utf8_lossy(&bytes)),
        Err(error) => format!("Error on reading termination message from logs: {error}"),
    }
}

fn last_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the last entries of a log in CRI's format say (`<time> <stream> <F or P> <text>`), whichever stream they are of.
/// What is no entry, such as one that was cut in front, is passed over.
fn end_of_log(log: &str) -> String {
    let mut entries: Vec<_> = log.lines().rev().take(MOST_LINES).collect();
    entries.reverse();
    let mut message = String::new();
    for entry in entries {
        let mut fields = entry.splitn(4, ' ').skip(1);
        let (Some("stdout" | "stderr"), Some(tag), Some(text)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        message.push_str(text);
        if tag.split(':').next() == Some("F") {
            message.push('\n');
        }
    }
    let mut start = message.len().saturating_sub(LONGEST_OF_LOG);
    while !message.is_char_boundary(start) {
        start += 1;
    }
    message.split_off(start)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::inputs::fixture::{Scratch, first, node, pod_of};

    struct Ended {
        node: Node,
        pod: Pod,
        _folder: Scratch,
    }

    impl Ended {
        fn new(policy: &str) -> Self {
            let folder = Scratch::new();
            let pod = pod_of(
                json!({"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": policy}),
            );
            let node = node(&folder);
            let file = file(&node, &pod, first(&pod), 2);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::create_dir_all(node.log(&pod, "app", 2).parent().unwrap()).unwrap();
            Self { node, pod, _folder: folder }
        }

        fn said(self, message: &str) -> Self {
            fs::write(file(&self.node, &self.pod, first(&self.pod), 2), message).unwrap();
            self
        }

        fn logged(self, log: &str) -> Self {
            fs::write(self.node.log(&self.pod, "app", 2), log).unwrap();
            self
        }

        fn read(&self, exit_code: i32) -> String {
            read(&self.node, &self.pod, first(&self.pod), 2, exit_code)
        }
    }

    fn entry(tag: &str, text: &str) -> String {
        format!("2026-01-01T00:00:00.000000001Z stderr {tag} {text}\n")
    }

    #[test]
    fn the_last_4096_bytes_of_the_file_are_the_message() {
        let ended = Ended::new("File").said("").logged(&entry("F", "x"));
        assert_eq!(ended.read(1), "", "the log does not count");
        let ended = ended.said("done\n");
        assert_eq!(ended.read(0), "done\n");
        let long = format!("cut{}", "x".repeat(4096));
        assert_eq!(ended.said(&long).read(0), "x".repeat(4096));
    }

    #[test]
    fn a_failure_that_said_nothing_is_told_by_the_end_of_its_log() {
        let ended = Ended::new("FallbackToLogsOnError")
            .said("")
            .logged(&[entry("P", "par"), entry("F", "tial")].concat());
        assert_eq!(ended.read(1), "partial\n");
        assert_eq!(ended.read(0), "", "only a failure");
        assert_eq!(ended.said("own").read(1), "own");
    }

    #[test]
    fn at_most_80_lines_and_2048_bytes_of_a_log_count() {
        let lines: String = (0..100).map(|number| entry("F", &number.to_string())).collect();
        let ended = Ended::new("FallbackToLogsOnError").logged(&lines);
        let message = ended.read(1);
        assert_eq!((message.lines().count(), message.lines().next()), (80, Some("20")));
        let long = entry("F", &"ü".repeat(3000));
        let message = ended.logged(&long).read(1);
        assert_eq!(message.len(), 2047, "no half letter");
        assert!(message.ends_with("ü\n"));
    }

    #[test]
    fn a_log_that_is_not_there_is_told() {
        let message = Ended::new("FallbackToLogsOnError").read(137);
        assert!(message.starts_with("Error on reading termination message from logs: "), "{message}");
    }
}
