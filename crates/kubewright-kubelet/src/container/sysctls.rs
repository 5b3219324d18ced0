//! Names of kernel parameters (`k8s.io/component-helpers/node/util/sysctl`).

#[cfg(any(target_os = "linux", test))]
use std::path::PathBuf;

/// A name whose parts are separated by dots. Where slashes separate them, a dot belongs to a part, and is a slash then.
pub(crate) fn normal(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name[first..].starts_with('/') => swapped(name),
        _ => name.to_owned(),
    }
}

/// Whether each ipc namespace has a parameter of its own of this name.
#[cfg(any(unix, test))]
pub(crate) fn is_of_ipc(name: &str) -> bool {
    let named = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix));
    (named || name == "kernel.sem") && !name.contains("..")
}

/// Where the kernel has a parameter.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/{}", swapped(name)))
}

/// The same name, with the other separator.
fn swapped(name: &str) -> String {
    let other = |letter| match letter {
        '.' => '/',
        '/' => '.',
        letter => letter,
    };
    name.chars().map(other).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_dot_in_a_part_is_one_where_slashes_separate_the_parts() {
        for (given, name) in [
            ("net.ipv4.conf.eth0/1.x", "net.ipv4.conf.eth0/1.x"),
            ("net/ipv4/conf/eth0.1/x", "net.ipv4.conf.eth0/1.x"),
            ("one", "one"),
        ] {
            assert_eq!(normal(given), name);
        }
        assert_eq!(file("net.ipv4.conf.eth0/1.x"), Path::new("/proc/sys/net/ipv4/conf/eth0.1/x"));
    }

    #[test]
    fn parameters_of_the_whole_machine_are_none_of_a_namespace() {
        for name in ["kernel.shm_rmid_forced", "kernel.msgmax", "kernel.sem", "fs.mqueue.msg_max"] {
            assert!(is_of_ipc(name), "{name}");
        }
        for name in
            ["kernel.semaphore", "kernel.panic", "vm.swappiness", "net.core.somaxconn", "kernel.shm..x"]
        {
            assert!(!is_of_ipc(name), "{name}");
        }
    }
}
