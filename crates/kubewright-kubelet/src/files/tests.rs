use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use proptest::prelude::*;
use rustix::fs::{CWD, Mode, mkdirat, mknodat};

use super::walk::DEEPEST;
use super::*;
use crate::inputs::fixture::Scratch;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

/// What a held folder contains.
fn names(held: &Held) -> Vec<CString> {
    let entries = held.entries().unwrap().map(|entry| entry.unwrap().file_name().to_owned());
    entries.filter(|name| !walk::is_self(name)).collect()
}

/// Folders below each other, and a file in the last.
fn nest(top: &Path, depth: usize) {
    let mut held = Held::open(top).unwrap();
    for _ in 0..depth {
        mkdirat(&held, "d", Mode::from_raw_mode(0o755)).unwrap();
        held = Held::entry(&held, "d").unwrap();
    }
    held.make(Path::new("file"), Links::Beneath, Missing::File).unwrap();
}

#[test]
fn links_are_followed_as_from_inside() {
    let root = Scratch::new();
    fs::create_dir_all(root.join("usr/etc")).unwrap();
    fs::write(root.join("usr/etc/passwd"), "inside").unwrap();
    symlink("/usr/etc", root.join("etc")).unwrap();
    symlink("../../../../usr/etc/passwd", root.join("usr/etc/relative")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    let held = Held::open(&root).unwrap();
    for path in ["etc/passwd", "/etc/relative", "../../etc/passwd"] {
        assert_eq!(held.read(Path::new(path), Links::Inside, 100).unwrap(), b"inside", "{path}");
    }
    assert!(held.find(Path::new("circle/x"), Links::Inside).is_err());
}

#[test]
fn what_is_made_in_a_volume_has_the_mode_of_the_volume() {
    let volume = Scratch::new();
    let held = Held::open(&volume).unwrap();
    let part = held.make(Path::new("a/./b"), Links::Beneath, Missing::FolderOfMode(0o2770)).unwrap();
    assert_eq!(
        (part.stat().unwrap().st_ino, mode(&volume.join("a/b"))),
        (volume.join("a/b").metadata().unwrap().ino(), 0o2770)
    );
    assert_eq!(mode(&volume.join("a")), 0o2770);
    assert!(held.find(Path::new("none"), Links::Beneath).is_err());
    let file = held.make(Path::new("a/c/file"), Links::Inside, Missing::File).unwrap();
    assert!(!file.is_folder().unwrap() && volume.join("a/c").is_dir());
}

#[test]
fn a_link_out_of_a_volume_leads_nowhere() {
    let (volume, outside) = (Scratch::new(), Scratch::new());
    symlink(&*outside, volume.join("out")).unwrap();
    symlink("none", volume.join("dangling")).unwrap();
    symlink("real", volume.join("in")).unwrap();
    fs::create_dir(volume.join("real")).unwrap();
    let held = Held::open(&volume).unwrap();
    for path in ["out", "out/x", "dangling", "dangling/x", "real/../out", "../x", "/x"] {
        assert!(held.make(Path::new(path), Links::Beneath, Missing::FolderOfMode(0o777)).is_err(), "{path}");
    }
    let error = held.find(Path::new("out"), Links::Beneath).unwrap_err();
    assert_eq!(error.to_string(), "it leads out of its folder");
    let real = held.find(Path::new("in"), Links::Beneath).unwrap();
    assert_eq!(real.stat().unwrap().st_ino, volume.join("real").metadata().unwrap().ino());
    assert_eq!(fs::read_dir(&*outside).unwrap().count(), 0);
}

#[test]
fn what_a_process_has_open_is_nowhere_inside() {
    let machine = Held::open(Path::new("/")).unwrap();
    for path in ["proc/self/root", "proc/self/cwd/x", "proc/self/exe", "proc/self/fd/0"] {
        assert!(machine.find(Path::new(path), Links::Inside).is_err(), "{path}");
    }
}

#[test]
fn what_is_held_stays_the_same_whatever_takes_its_place() {
    let (volume, outside) = (Scratch::new(), Scratch::new());
    fs::create_dir(volume.join("part")).unwrap();
    fs::write(volume.join("part/own"), "").unwrap();
    fs::write(outside.join("token"), "").unwrap();
    let part = Held::open(&volume).unwrap().find(Path::new("part"), Links::Beneath).unwrap();
    fs::rename(volume.join("part"), volume.join("moved")).unwrap();
    symlink(&*outside, volume.join("part")).unwrap();
    assert_eq!(names(&part), [c"own".to_owned()]);
    part.set_mode(0o700).unwrap();
    assert_eq!(mode(&volume.join("moved")), 0o700);
    part.make(Path::new("new"), Links::Beneath, Missing::FolderOfMode(0o755)).unwrap();
    assert!(volume.join("moved/new").is_dir());
    assert_eq!(fs::read_dir(&*outside).unwrap().count(), 1);
}

#[test]
fn only_files_are_read_and_only_short_ones() {
    let folder = Scratch::new();
    fs::write(folder.join("file"), "12345").unwrap();
    mknodat(CWD, folder.join("pipe"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let held = Held::open(&folder).unwrap();
    let read = |path: &str, most| held.read(Path::new(path), Links::Inside, most);
    assert_eq!(read("file", 5).unwrap(), b"12345");
    assert!(read("file", 4).is_err());
    assert!(read("", 5).is_err());
    // Nobody waits for whoever would write to it.
    assert!(read("pipe", 5).is_err());
    assert!(Held::open(Path::new("/")).unwrap().read(Path::new("dev/zero"), Links::Inside, 5).is_err());
}

#[test]
fn a_walk_shows_links_and_does_not_follow_them() {
    let (folder, outside) = (Scratch::new(), Scratch::new());
    fs::create_dir_all(folder.join("a/b")).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    symlink(&*outside, folder.join("a/b/out")).unwrap();
    let mut inodes = Vec::new();
    walk(&Held::open(&folder).unwrap(), |held| inodes.push(held.stat().unwrap().st_ino)).unwrap();
    let ino = |path: &str| folder.join(path).symlink_metadata().unwrap().ino();
    assert_eq!(inodes, [ino(""), ino("a"), ino("a/b"), ino("a/b/out")]);
}

/// The container's move comes after an entry was read, and before it is gone into.
#[test]
fn a_walk_does_not_go_where_a_folder_became_a_link() {
    let (folder, outside) = (Scratch::new(), Scratch::new());
    fs::create_dir(folder.join("a")).unwrap();
    fs::write(folder.join("a/own"), "").unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    let kept = outside.join("kept").metadata().unwrap().ino();
    let (mut shown, own) = (Vec::new(), folder.join("a/own").metadata().unwrap().ino());
    walk(&Held::open(&folder).unwrap(), |held| {
        shown.push(held.stat().unwrap().st_ino);
        if shown.len() == 2 {
            fs::rename(folder.join("a"), folder.join("moved")).unwrap();
            symlink(&*outside, folder.join("a")).unwrap();
        }
    })
    .unwrap();
    assert!(shown.contains(&own) && !shown.contains(&kept), "{shown:?}");
}

#[test]
fn a_walk_refuses_what_is_too_deep() {
    let folder = Scratch::new();
    nest(&folder, DEEPEST - 1);
    let held = Held::open(&folder).unwrap();
    walk(&held, |_| ()).unwrap();
    let inner = Scratch::new();
    fs::rename(folder.join("d"), inner.join("d")).unwrap();
    fs::create_dir(folder.join("d")).unwrap();
    fs::rename(inner.join("d"), folder.join("d/d")).unwrap();
    let error = walk(&held, |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "more than 128 folders are below each other");
}

#[test]
fn a_folder_is_removed_however_deep_it_is_and_whatever_its_modes() {
    let (folder, outside) = (Scratch::new(), Scratch::new());
    fs::write(outside.join("kept"), "").unwrap();
    let top = folder.join("top");
    // With names as those that what lies deep is moved to.
    fs::create_dir_all(top.join("0/full")).unwrap();
    fs::write(top.join("1"), "").unwrap();
    nest(&top, 3000);
    for path in ["d/d", "0"] {
        symlink(&*outside, top.join(path).join("out")).unwrap();
        fs::set_permissions(top.join(path), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let moved = remove::remove_and_count(&top).unwrap();
    // Once for as many as are held at a time. A number may be taken, which counts too.
    assert!((3000 / 64..=3000 / 64 + 4).contains(&moved), "{moved}: more are held at a time, or fewer");
    assert!(!top.exists() && outside.join("kept").exists());
    remove(&top).unwrap();
    symlink(&*outside, &top).unwrap();
    remove(&top).unwrap();
    assert!(!top.exists() && outside.join("kept").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever links a container puts into its volume.
    #[test]
    fn no_path_leaves_its_folder(
        links in proptest::collection::vec(("[abc]", "(/|\\.\\./|\\./)?(\\.\\./){0,2}[abcx]?(/[abc])?"), 0..4),
        path in "/?([abc]|\\.\\.|\\.)(/([abc]|\\.\\.|\\.)){0,3}",
    ) {
        let outer = Scratch::new();
        let root = outer.join("root");
        fs::create_dir_all(root.join("d")).unwrap();
        for (name, target) in &links {
            let _ = symlink(target, root.join(name));
        }
        let held = Held::open(&root).unwrap();
        for links in [Links::Beneath, Links::Inside] {
            if let Ok(found) = held.make(Path::new(&path), links, Missing::FolderOfMode(0o755)) {
                let found = found.stat().unwrap().st_ino;
                let mut inside = Vec::new();
                walk(&held, |held| inside.push(held.stat().unwrap().st_ino)).unwrap();
                prop_assert!(inside.contains(&found));
            }
        }
        prop_assert_eq!(fs::read_dir(&*outer).unwrap().count(), 1, "nothing was made outside");
    }
}
