//! What a group of processes does, as proc(5) says it: on which ports of TCP it listens, and how long it has computed. Where there is no
//! /proc nothing is known.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The ports on which processes of a group listen now; none where that is not to be known.
pub(super) fn ports(group: i32) -> Option<BTreeSet<u16>> {
    Some(members(group)?.flat_map(|(process, _)| of_process(&process)).collect())
}

/// How long the processes of a group that live have computed; none where that is not to be known.
pub(super) fn computed(group: i32) -> Option<Duration> {
    Some(members(group)?.filter_map(|(_, stat)| computed_of(&stat)).sum())
}

/// The processes of a group, with what `stat` says of each.
fn members(group: i32) -> Option<impl Iterator<Item = (PathBuf, String)>> {
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        (process.path(), stat)
    });
    Some(processes.filter(move |(_, stat)| group_of(stat) == Some(group)))
}

/// The time in user and kernel mode that a line of `/proc/PID/stat` says: the fields 14 and 15, in hundredths of a second.
fn computed_of(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: u64 =
        rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(10 * ticks))
}

/// The process group that a line of `/proc/PID/stat` names: the third field after the name, which may have spaces.
fn group_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

fn of_process(process: &Path) -> BTreeSet<u16> {
    let links = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let targets = links.filter_map(|link| fs::read_link(link.path()).ok());
    let sockets: BTreeSet<String> =
        targets.filter_map(|target: PathBuf| inode(&target.to_string_lossy())).collect();
    let tables =
        ["net/tcp", "net/tcp6"].map(|table| fs::read_to_string(process.join(table)).unwrap_or_default());
    tables.iter().flat_map(|table| listening(table, &sockets)).collect()
}

/// `123` of `socket:[123]`.
fn inode(target: &str) -> Option<String> {
    target.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned)
}

/// The ports of those of the sockets that listen.
fn listening(table: &str, sockets: &BTreeSet<String>) -> BTreeSet<u16> {
    let port = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (_, port) = address.rsplit_once(':')?;
        let is_theirs = *state == LISTENS && sockets.contains(*inode);
        is_theirs.then(|| u16::from_str_radix(port, 16).ok()).flatten()
    };
    table.lines().skip(1).filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_of_sockets_that_listen_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41 1 0 100 0 0 10 0\n   \
            1: 0100007F:1F91 0100007F:ABCD 01 00000000:00000000 00:00000000 00000000  1000        0 42 1 0 100 0 0 10 0\n   \
            2: 0100007F:1F92 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 43 1 0 100 0 0 10 0\n";
        let sockets =
            ["socket:[41]", "socket:[42]", "/dev/null"].iter().filter_map(|target| inode(target)).collect();
        assert_eq!(listening(table, &sockets), BTreeSet::from([8080]));
    }

    #[test]
    fn the_group_of_a_process_with_a_strange_name_is_read() {
        assert_eq!(group_of("12 (a) b) S 1 12 12 0 -1"), Some(12));
        assert_eq!(group_of(""), None);
    }
}
