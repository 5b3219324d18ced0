use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::*;
use crate::inputs::fixture::{NOW, Scratch};

fn payload(files: &[(&str, &str)]) -> Payload {
    let file = |text: &str| File { data: text.into(), mode: 0o640, owner: None };
    Payload(files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect())
}

fn put(folder: &Path, payload: &Payload) -> Result<Change, String> {
    write(folder, payload, NOW, || Ok(()))
}

/// All files that somebody finds in a folder who follows links, without what is the writer's.
fn seen(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(folder.join(&path)).unwrap() {
            let path = path.join(entry.unwrap().file_name());
            if path.starts_with(DATA) || path.to_string_lossy().starts_with("..2") {
                continue;
            }
            if folder.join(&path).is_dir() {
                left.push(path);
            } else {
                let text = fs::read_to_string(folder.join(&path)).unwrap();
                found.insert(path.to_string_lossy().into_owned(), text);
            }
        }
    }
    found
}

#[test]
fn files_are_seen_by_links_into_one_folder_of_data() {
    let folder = Scratch::new();
    assert_eq!(put(&folder, &payload(&[("key", "1"), ("sub/./deep/key", "2")])), Ok(Change::Written));
    assert_eq!(fs::read_link(folder.join("key")).unwrap(), Path::new("..data/key"));
    assert_eq!(fs::read_link(folder.join("sub")).unwrap(), Path::new("..data/sub"));
    assert_eq!(fs::read_link(folder.join("..data")).unwrap(), Path::new("..2026_01_01_00_00_00.0"));
    assert_eq!(fs::read_to_string(folder.join("sub/deep/key")).unwrap(), "2");
    let mode = folder.join("key").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn what_is_as_it_should_be_is_not_touched() {
    let folder = Scratch::new();
    let files = payload(&[("a", "1"), ("b", "2")]);
    put(&folder, &files).unwrap();
    let before = fs::read_link(folder.join(DATA)).unwrap();
    assert_eq!(put(&folder, &files), Ok(Change::None));
    assert_eq!(fs::read_link(folder.join(DATA)).unwrap(), before);
    fs::remove_file(folder.join("a")).unwrap();
    assert_eq!(put(&folder, &files), Ok(Change::Written), "a link that is gone is made anew");
    assert_eq!(fs::read_link(folder.join(DATA)).unwrap(), before);
}

#[test]
fn what_a_process_left_that_ended_in_the_middle_is_in_nobodys_way() {
    let folder = Scratch::new();
    put(&folder, &payload(&[("a", "1")])).unwrap();
    fs::create_dir(folder.join("..2025_01_01_00_00_00.0")).unwrap();
    symlink("nowhere", folder.join(NEXT_DATA)).unwrap();
    assert_eq!(put(&folder, &payload(&[("a", "2")])), Ok(Change::Written));
    let mut left: Vec<_> = fs::read_dir(&*folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["..2026_01_01_00_00_00.1", "..data", "a"]);
}

#[test]
fn paths_that_leave_the_folder_are_refused_before_anything_is_touched() {
    let long = "x".repeat(256);
    for (path, error) in [
        ("", "invalid path: must not be empty: \"\"".to_owned()),
        ("/etc/passwd", "invalid path: must be relative path: /etc/passwd".to_owned()),
        ("a/../../b", "invalid path: must not contain '..': a/../../b".to_owned()),
        ("..", "invalid path: must not contain '..': ..".to_owned()),
        ("..data", "invalid path: must not start with '..': ..data".to_owned()),
        ("./..data/x", "invalid path: must not start with '..': ./..data/x".to_owned()),
        ("./.", "invalid path: must name a file: ./.".to_owned()),
        (&long, "invalid path: filenames must be less than or equal to 255 characters".to_owned()),
    ] {
        let folder = Scratch::new();
        assert_eq!(put(&folder, &payload(&[("good", "1"), (path, "2")])), Err(error));
        assert_eq!(fs::read_dir(&*folder).unwrap().count(), 0);
    }
}

#[test]
fn a_reader_beside_a_writer_never_sees_half_of_an_update() {
    let folder = Scratch::new();
    let version = |number: u32| {
        let text = number.to_string();
        payload(&[("a", &text), ("b/c", &text)])
    };
    put(&folder, &version(0)).unwrap();
    let done = AtomicBool::new(false);
    let whole = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..300 {
                put(&folder, &version(number)).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut whole = 0;
        while !done.load(Ordering::Relaxed) {
            // One look at `..data`, as a program does that wants several files of one version.
            let data = folder.join(fs::read_link(folder.join(DATA)).unwrap());
            let (Ok(a), Ok(c)) = (fs::read_to_string(data.join("a")), fs::read_to_string(data.join("b/c")))
            else {
                continue;
            };
            assert_eq!(a, c);
            whole += 1;
        }
        whole
    });
    assert!(whole > 0);
}

fn files() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("(a|b|c/d|c/e|f/g/h)", "[xy]{0,2}", 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_update_is_seen_whole_at_one_moment(updates in proptest::collection::vec(files(), 1..6)) {
        let folder = Scratch::new();
        let mut before = None;
        for update in updates {
            let pairs: Vec<_> = update.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let at_the_last_moment = || {
                if let Some(before) = &before {
                    assert_eq!(&seen(&folder), before);
                }
                Ok(())
            };
            let change = write(&folder, &payload(&pairs), NOW, at_the_last_moment).unwrap();
            prop_assert_eq!(&seen(&folder), &update);
            if before.is_some() {
                prop_assert_eq!(change == Change::None, before.as_ref() == Some(&update));
            }
            before = Some(update);
        }
    }

    #[test]
    fn names_never_escape_the_folder(path in "(\\.{0,3}|[ab/]|\\.\\./){0,6}") {
        let outer = Scratch::new();
        let folder = outer.join("volume");
        fs::create_dir(&folder).unwrap();
        let _ = put(&folder, &payload(&[(&path, "x")]));
        prop_assert_eq!(fs::read_dir(&*outer).unwrap().count(), 1);
    }
}
