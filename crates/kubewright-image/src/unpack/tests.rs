//! Layers written by hand, unpacked into a folder of a test.

use std::{fs, os::unix::fs::MetadataExt, path::Path, slice::from_ref};

use proptest::prelude::*;
use tar::EntryType;

use super::*;
use crate::testing::{Folder, TestLayer, gzip};

/// Unpacks layers into the folder `root` of this one.
fn unpack(folder: &Folder, layers: &[TestLayer]) -> io::Result<PathBuf> {
    unpack_within(folder, layers, Limits::default())
}

fn unpack_within(folder: &Folder, layers: &[TestLayer], limits: Limits) -> io::Result<PathBuf> {
    let root = folder.path().join("root");
    fs::create_dir(&root)?;
    let mut unpacker = Unpacker::new(root.clone(), limits);
    for layer in layers {
        let archive = layer.archive();
        unpacker.layer(&archive[..], Digest::of(&archive))?;
    }
    unpacker.finish()?;
    Ok(root)
}

/// What the error says, when these layers are unpacked.
fn refusal(folder: &Folder, layers: &[TestLayer]) -> String {
    unpack(folder, layers).expect_err("refused").to_string()
}

/// All paths below a folder, sorted, folders with a slash at their end.
fn paths(root: &Path) -> Vec<String> {
    let (mut found, mut ahead) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let is_folder = entry.file_type().expect("a kind").is_dir();
            let path = entry.path().strip_prefix(root).expect("below").display().to_string();
            found.push(if is_folder { path + "/" } else { path });
            ahead.extend(is_folder.then(|| entry.path()));
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

#[test]
fn files_have_their_content_modes_times_and_links() {
    let folder = Folder::new("unpack-files");
    let layer = TestLayer::new()
        .folder("./", 0o755)
        .folder("./bin/", 0o555)
        .file("./bin/tool", 0o4755, b"tool")
        .hard_link("bin/same", "./bin/tool")
        .symlink("sh", "/bin/tool")
        .file("implied/parent", 0o600, b"");
    let root = unpack(&folder, &[layer]).expect("unpacked");
    assert_eq!(paths(&root), ["bin/", "bin/same", "bin/tool", "implied/", "implied/parent", "sh"]);
    let tool = fs::metadata(root.join("bin/tool")).expect("there");
    assert_eq!(
        (text(&root.join("bin/tool")), tool.mode() & 0o7777, tool.mtime()),
        ("tool".into(), 0o4755, 1_700_000_000)
    );
    assert_eq!(tool.ino(), fs::metadata(root.join("bin/same")).expect("there").ino());
    assert_eq!(fs::metadata(root.join("bin")).expect("there").mode() & 0o7777, 0o555);
    assert_eq!(fs::metadata(root.join("implied")).expect("there").mode() & 0o7777, 0o755);
    assert_eq!(fs::read_link(root.join("sh")).expect("a link"), Path::new("/bin/tool"));
}

#[test]
fn files_belong_to_whom_the_image_says_where_this_user_may_do_that() {
    let folder = Folder::new("unpack-owner");
    let me = fs::metadata(folder.path()).expect("there");
    let layer = TestLayer::new()
        .owned_by(1234, 5678)
        .folder("home", 0o750)
        .file("home/tool", 0o4755, b"")
        .symlink("home/link", "tool");
    let root = unpack(&folder, &[layer]).expect("unpacked");
    let expected = if me.uid() == 0 { (1234, 5678) } else { (me.uid(), me.gid()) };
    for (path, mode) in [("home", 0o750), ("home/tool", 0o4755), ("home/link", 0o777)] {
        let there = root.join(path).symlink_metadata().expect("there");
        assert_eq!(((there.uid(), there.gid()), there.mode() & 0o7777), (expected, mode), "{path}");
    }
}

#[test]
fn a_later_layer_replaces_what_is_of_another_kind() {
    let folder = Folder::new("unpack-replace");
    let lower = TestLayer::new()
        .file("folder/file", 0o644, b"")
        .file("file", 0o644, b"")
        .symlink("link", "folder")
        .folder("kept", 0o700)
        .file("kept/file", 0o644, b"old");
    let upper = TestLayer::new()
        .file("folder", 0o644, b"now a file")
        .folder("file", 0o755)
        .folder("link", 0o755)
        .folder("kept", 0o711)
        .file("kept/file", 0o644, b"new");
    let root = unpack(&folder, &[lower, upper]).expect("unpacked");
    assert_eq!(paths(&root), ["file/", "folder", "kept/", "kept/file", "link/"]);
    assert_eq!(text(&root.join("folder")), "now a file");
    assert_eq!(text(&root.join("kept/file")), "new");
    assert_eq!(fs::metadata(root.join("kept")).expect("there").mode() & 0o777, 0o711);
}

#[test]
fn whiteouts_take_away_what_layers_below_have_and_nothing_of_their_own() {
    let folder = Folder::new("unpack-whiteout");
    let lower = TestLayer::new()
        .file("a", 0o644, b"")
        .file("b/deep/file", 0o644, b"")
        .file("c", 0o644, b"old")
        .file("d/old", 0o644, b"")
        .file(".wh..wh.plnk/note", 0o644, b"");
    let upper = TestLayer::new()
        .whiteout(".wh.a")
        .whiteout(".wh.b")
        .file("c", 0o644, b"new")
        .whiteout(".wh.c")
        .file("d/new", 0o644, b"")
        .whiteout(".wh.d")
        .whiteout(".wh.nothing")
        .whiteout("no/such/.wh.folder")
        .whiteout(".wh..wh.aufs");
    let root = unpack(&folder, &[lower, upper]).expect("unpacked");
    assert_eq!(paths(&root), [".wh..wh.plnk/", ".wh..wh.plnk/note", "c", "d/", "d/new"]);
    assert_eq!(text(&root.join("c")), "new");
}

#[test]
fn an_opaque_folder_has_only_what_its_own_layer_and_later_ones_bring() {
    let folder = Folder::new("unpack-opaque");
    let lower =
        TestLayer::new().file("a/old", 0o644, b"").file("a/sub/old", 0o644, b"").file("beside", 0o644, b"");
    let upper = TestLayer::new()
        .file("a/sub/new", 0o644, b"")
        .whiteout("a/.wh..wh..opq")
        .file("a/new", 0o644, b"")
        .whiteout("none/.wh..wh..opq");
    let last = TestLayer::new().file("a/last", 0o644, b"");
    let root = unpack(&folder, &[lower, upper, last]).expect("unpacked");
    assert_eq!(paths(&root), ["a/", "a/last", "a/new", "a/sub/", "a/sub/new", "beside"]);

    let folder = Folder::new("unpack-opaque-root");
    let lower = TestLayer::new().file("old", 0o644, b"");
    let root = unpack(&folder, &[lower, TestLayer::new().whiteout(".wh..wh..opq")]).expect("unpacked");
    assert_eq!(paths(&root), [""; 0]);
}

#[test]
fn a_whiteout_of_the_folder_above_is_refused() {
    for name in ["a/.wh.", "a/.wh..", "a/.wh..."] {
        let folder = Folder::new("unpack-bad-whiteout");
        assert!(
            refusal(&folder, &[TestLayer::new().whiteout(name)]).contains("whiteout of no file"),
            "{name}"
        );
    }
}

#[test]
fn an_entry_that_climbs_out_is_refused() {
    for name in ["../outside", "a/../../outside", "/../outside", "a/b/../../../outside"] {
        let folder = Folder::new("unpack-climb");
        let told = refusal(&folder, &[TestLayer::new().file(name, 0o644, b"")]);
        assert!(told.contains(name) && told.contains("leads out of the image"), "{told}");
        assert!(!folder.path().join("outside").exists());
    }
}

#[test]
fn an_absolute_path_is_one_below_the_root() {
    let folder = Folder::new("unpack-absolute");
    let layer = TestLayer::new().file("/etc/kubewright-test", 0o644, b"").file("a/../b", 0o644, b"");
    let root = unpack(&folder, &[layer]).expect("unpacked");
    assert_eq!(paths(&root), ["b", "etc/", "etc/kubewright-test"]);
    assert!(!Path::new("/etc/kubewright-test").exists());
}

#[test]
fn a_file_through_a_symlink_lands_where_the_link_leads_within_the_root() {
    let folder = Folder::new("unpack-through");
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).expect("made");
    let absolute = outside.to_str().expect("text");
    let lower = TestLayer::new()
        .folder("usr/lib", 0o755)
        .symlink("lib", "usr/lib")
        .symlink("up", "../../../../../outside")
        .symlink("absolute", absolute)
        .symlink("file", &format!("{absolute}/file"));
    let upper = TestLayer::new()
        .file("lib/libc.so", 0o644, b"")
        .file("up/one", 0o644, b"")
        .file("absolute/two", 0o644, b"")
        .file("file", 0o644, b"a file now")
        .whiteout("absolute/.wh..wh..opq");
    let root = unpack(&folder, &[lower, upper]).expect("unpacked");
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0, "nothing came out");
    assert!(root.join("usr/lib/libc.so").is_file() && root.join("outside/one").is_file());
    assert!(root.join(absolute.trim_start_matches('/')).join("two").is_file());
    assert_eq!(text(&root.join("file")), "a file now");
}

#[test]
fn modes_of_folders_are_not_given_to_what_a_symlink_leads_to() {
    let folder = Folder::new("unpack-mode");
    let outside = folder.path().join("outside");
    fs::create_dir_all(outside.join("sub")).expect("made");
    let mode = || fs::metadata(outside.join("sub")).expect("there").mode();
    let before = mode();
    let lower = TestLayer::new().folder("a", 0o755).folder("a/sub", 0o700 ^ before & 0o777);
    let upper = TestLayer::new().symlink("a", outside.to_str().expect("text"));
    unpack(&folder, &[lower, upper]).expect("unpacked");
    assert_eq!(mode(), before);
}

#[test]
fn a_hard_link_reaches_nothing_outside() {
    let folder = Folder::new("unpack-link");
    fs::write(folder.path().join("secret"), "secret").expect("written");
    let secret = folder.path().join("secret").display().to_string();
    let told = refusal(&folder, &[TestLayer::new().hard_link("got", "../secret")]);
    assert!(told.contains("leads out of the image"), "{told}");

    for (name, target) in
        [("got", secret.as_str()), ("got", "up/secret"), ("got", "missing"), ("got", "."), ("x", "")]
    {
        let folder = Folder::new("unpack-link-absolute");
        let layer = TestLayer::new().symlink("up", "..").hard_link(name, target);
        let told = refusal(&folder, &[layer]);
        assert!(told.contains("is a link to"), "{told}");
    }
}

#[test]
fn a_hard_link_to_itself_and_to_a_symlink_are_what_they_say() {
    let folder = Folder::new("unpack-self");
    let layer = TestLayer::new()
        .file("a", 0o644, b"a")
        .hard_link("a", "a")
        .symlink("s", "/nowhere")
        .hard_link("t", "s");
    let root = unpack(&folder, &[layer]).expect("unpacked");
    assert_eq!(text(&root.join("a")), "a");
    assert_eq!(fs::read_link(root.join("t")).expect("a link"), Path::new("/nowhere"));
}

#[test]
fn symlinks_in_a_circle_are_refused() {
    let folder = Folder::new("unpack-circle");
    let layer = TestLayer::new().symlink("a", "b").symlink("b", "a").file("a/file", 0o644, b"");
    assert!(refusal(&folder, &[layer]).contains("too many symbolic links"));
}

#[test]
fn the_root_stays_a_folder() {
    for layer in [
        TestLayer::new().symlink("./", "/etc"),
        TestLayer::new().symlink("a/..", "/etc"),
        TestLayer::new().entry(EntryType::Regular, ".", 0o644, b"x"),
    ] {
        let folder = Folder::new("unpack-root");
        assert!(refusal(&folder, &[layer]).contains("its root is no folder"));
    }
}

#[test]
fn devices_and_pipes_are_left_out() {
    let folder = Folder::new("unpack-devices");
    let layer = TestLayer::new()
        .entry(EntryType::Char, "dev/null", 0o666, b"")
        .entry(EntryType::Block, "dev/sda", 0o600, b"")
        .entry(EntryType::Fifo, "pipe", 0o600, b"")
        .file("file", 0o644, b"");
    let root = unpack(&folder, &[layer]).expect("unpacked");
    assert_eq!(paths(&root), ["file"]);
}

#[test]
fn unknown_kinds_are_refused() {
    let folder = Folder::new("unpack-kind");
    let told = refusal(&folder, &[TestLayer::new().entry(EntryType::new(b'V'), "volume", 0o644, b"")]);
    assert!(told.contains("volume: it is of the unknown kind"), "{told}");
}

#[test]
fn more_than_the_limits_is_refused() {
    let layer = TestLayer::new().file("a", 0o644, &[0; 600]).file("b", 0o644, &[0; 600]);
    for (limits, told) in [
        (Limits { entries: 1, bytes: 10_000 }, "more than 1 entries"),
        (Limits { entries: 10, bytes: 1_000 }, "more than 1000 bytes"),
    ] {
        let folder = Folder::new("unpack-limits");
        let refused = unpack_within(&folder, from_ref(&layer), limits).expect_err("refused").to_string();
        assert!(refused.contains(told), "{refused}");
    }
    let (folder, exact) = (Folder::new("unpack-limits-exact"), Limits { entries: 2, bytes: 1_200 });
    unpack_within(&folder, &[layer], exact).expect("just enough");
}

#[test]
fn the_limits_hold_for_all_layers_together() {
    let folder = Folder::new("unpack-limits-all");
    let layers = vec![TestLayer::new().file("a", 0o644, &[0; 600]); 2];
    let limits = Limits { entries: 10, bytes: 1_000 };
    assert!(unpack_within(&folder, &layers, limits).is_err());
}

#[test]
fn endless_names_and_endless_padding_are_refused() {
    let folder = Folder::new("unpack-name");
    let name = TestLayer::new().entry(EntryType::GNULongName, "././@LongLink", 0o644, &vec![b'a'; 3 << 20]);
    let told = refusal(&folder, &[name.file("a", 0o644, b"")]);
    assert!(told.contains("too long names"), "{told}");

    let folder = Folder::new("unpack-padding");
    let padded = gzip(&[TestLayer::new().archive(), vec![0; 4 << 20]].concat());
    let limits = Limits { entries: 10, bytes: 1 << 20 };
    let mut unpacker = Unpacker::new(folder.path().to_owned(), limits);
    let told = unpacker.layer(&padded[..], Digest::of(b"")).expect_err("refused").to_string();
    assert!(told.contains("after its last entry"), "{told}");
}

#[test]
fn folders_below_each_other_have_an_end() {
    let folder = Folder::new("unpack-deep");
    let deep = |depth: usize| format!("{}\0", vec!["d"; depth].join("/")).into_bytes();
    let of = |depth| {
        TestLayer::new().entry(EntryType::GNULongName, "././@LongLink", 0o644, &deep(depth)).entry(
            EntryType::Directory,
            "short",
            0o755,
            b"",
        )
    };
    assert!(refusal(&folder, &[of(300)]).contains("folders below each other"));
    unpack(&Folder::new("unpack-deep-enough"), &[of(200)]).expect("unpacked");
}

#[test]
fn another_content_than_the_image_says_is_refused() {
    let folder = Folder::new("unpack-digest");
    let layer = TestLayer::new().file("a", 0o644, b"").archive();
    let mut unpacker = Unpacker::new(folder.path().to_owned(), Limits::default());
    let told = unpacker.layer(&layer[..], Digest::of(b"another")).expect_err("refused").to_string();
    assert!(told.contains("its content is") && told.contains(&Digest::of(b"another").hex()), "{told}");
    assert!(unpacker.layer(&layer[..700], Digest::of(b"")).is_err(), "it is cut off");
    assert!(
        unpacker.layer(&b"no archive, but long enough to be one: ".repeat(20)[..], Digest::of(b"")).is_err()
    );
}

#[test]
fn paths_in_the_root_resolve_as_inside_it() {
    let folder = Folder::new("resolve");
    let layer = TestLayer::new()
        .file("usr/etc/passwd", 0o644, b"")
        .symlink("etc", "/usr/etc")
        .symlink("out", "../../../../usr/./etc/passwd")
        .symlink("dangling", "/none")
        .symlink("self", "self");
    let root = unpack(&folder, &[layer]).expect("unpacked");
    let of = |path: &str| resolve(&root, Path::new(path));
    let passwd = root.join("usr/etc/passwd");
    for path in ["/etc/passwd", "etc/passwd", "out", "../../etc/../etc/passwd", "//usr//etc/./passwd"] {
        assert_eq!(of(path).expect("there"), passwd, "{path}");
    }
    assert_eq!(of("/").expect("there"), root);
    for (path, kind) in [
        ("none", io::ErrorKind::NotFound),
        ("dangling", io::ErrorKind::NotFound),
        ("etc/passwd/x", io::ErrorKind::NotADirectory),
        ("self", io::ErrorKind::Other),
    ] {
        assert_eq!(of(path).expect_err(path).kind(), kind, "{path}");
    }
}

/// What may be in an archive: paths of few names, so that they meet.
fn changes() -> impl Strategy<Value = Vec<(u8, String, String)>> {
    let path = "(/|\\./|\\.\\./)?((a|b|c)/){0,3}(a|b|c|\\.wh\\.b|\\.wh\\.\\.wh\\.\\.opq)";
    let target = "(/|(\\.\\./){1,4})?((a|b)/){0,2}(a|b|outside|outside/a)";
    proptest::collection::vec((0..4_u8, path, target), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each change is a layer, so that those come into play that follow a refused one.
    #[test]
    fn whatever_layers_say_nothing_beside_the_root_changes(changes in changes()) {
        let folder = Folder::new("unpack-any");
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        fs::create_dir(&root).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("a"), "as it was").expect("written");
        let mut unpacker = Unpacker::new(root, Limits::default());
        for (kind, path, target) in changes {
            let layer = match kind {
                0 => TestLayer::new().file(&path, 0o666, b"changed"),
                1 => TestLayer::new().folder(&path, 0o700),
                2 => TestLayer::new().symlink(&path, &target),
                _ => TestLayer::new().hard_link(&path, &target),
            };
            let archive = layer.archive();
            let _ = unpacker.layer(&archive[..], Digest::of(&archive));
        }
        unpacker.finish().expect("all folders that it made are there");
        let beside: Vec<String> =
            paths(folder.path()).into_iter().filter(|path| !path.starts_with("root/")).collect();
        prop_assert_eq!(beside, ["outside/", "outside/a"]);
        prop_assert_eq!(text(&outside.join("a")), "as it was");
    }
}
