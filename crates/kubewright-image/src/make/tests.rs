use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::{Source, Store, elf::tests::program_for_here, testing::Folder};

/// Makes an image of a program.
fn recipe(program: &Path) -> Recipe<'_> {
    Recipe { program, name: "app", labels: BTreeMap::new(), authorities: None, time: 0 }
}

/// A program in a folder.
fn program_in(folder: &Folder) -> PathBuf {
    let path = folder.path().join("program");
    fs::write(&path, program_for_here()).expect("written");
    path
}

fn name() -> Vec<Reference> {
    vec![Reference::parse("registry.example/app:v1").expect("a name")]
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let folder = Folder::new("make-same");
    let program = program_in(&folder);
    // Times and owners of the file do not count.
    let copy = folder.path().join("copy");
    fs::copy(&program, &copy).expect("copied");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).expect("its own file");
    let first = recipe(&program).make(&folder.path().join("first"), &name()).expect("made");
    let second = recipe(&copy).make(&folder.path().join("second"), &name()).expect("made");
    assert_eq!((first.digest, first.id, first.size), (second.digest, second.id, second.size));
    assert_eq!(first.layout.file_name(), second.layout.file_name());
    let archives = [("first", &first), ("second", &second)].map(|(name, made)| {
        let archive = folder.path().join(format!("{name}.tar"));
        export(&made.layout, &archive).expect("written");
        Digest::of(&fs::read(archive).expect("there"))
    });
    assert_eq!(archives[0], archives[1]);
    let later = Recipe { time: 1_700_000_000, ..recipe(&program) };
    assert_ne!(later.make(&folder.path().join("later"), &name()).expect("made").digest, first.digest);
}

#[test]
fn what_is_made_is_loaded_and_runs_as_a_user_of_its_own() {
    let folder = Folder::new("make-load");
    let program = program_in(&folder);
    let (layouts, archive) = (folder.path().join("layouts"), folder.path().join("image.tar"));
    let labels = BTreeMap::from([("org.opencontainers.image.version".to_owned(), "1.0".to_owned())]);
    let made = Recipe { labels, ..recipe(&program) }.make(&layouts, &name()).expect("made");
    export(&made.layout, &archive).expect("written");
    for (store, from) in [("folder", &made.layout), ("archive", &archive)] {
        let store = Store::open(&folder.path().join(store)).expect("a store");
        let loaded = store.load(Source::Path(from), None).expect("loaded");
        let image = &loaded[0].image;
        assert_eq!((loaded.len(), image.id, image.size), (1, made.id, made.size));
        let by_digest = format!("registry.example/app:v1@{}", made.digest);
        assert!(store.get(&by_digest.parse().expect("a name")).expect("read").is_some());
        assert_eq!(image.config.entrypoint, ["/usr/local/bin/app"]);
        assert_eq!(image.config.user, "65532:65532");
        assert_eq!(image.config.created.as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(image.config.labels["org.opencontainers.image.version"], "1.0");
        let root = store.root(image).expect("unpacked");
        let placed = fs::metadata(root.join("usr/local/bin/app")).expect("the program");
        assert_eq!(placed.len(), fs::metadata(&program).expect("there").len());
        assert_eq!(placed.mode() & 0o7777, 0o755);
        assert_eq!(fs::metadata(root.join("tmp")).expect("there").mode() & 0o7777, 0o1777);
        let users = fs::read_to_string(root.join("etc/passwd")).expect("there");
        assert!(users.contains("nonroot:x:65532:65532:"));
    }
}

#[test]
fn authorities_are_put_where_programs_look_for_them() {
    let folder = Folder::new("make-authorities");
    let program = program_in(&folder);
    let authorities = folder.path().join("ca.pem");
    fs::write(&authorities, "PEM").expect("written");
    let recipe = Recipe { authorities: Some(&authorities), ..recipe(&program) };
    let layout = recipe.make(&folder.path().join("layouts"), &name()).expect("made").layout;
    let store = Store::open(&folder.path().join("store")).expect("a store");
    let image = store.load(Source::Path(&layout), None).expect("loaded").remove(0).image;
    let root = store.root(&image).expect("unpacked");
    let path = "/etc/ssl/certs/ca-certificates.crt";
    assert_eq!(fs::read_to_string(root.join(&path[1..])).expect("there"), "PEM");
    assert!(image.config.env.contains(&("SSL_CERT_FILE".to_owned(), path.to_owned())));
}

#[test]
fn a_failure_leaves_what_was_there() {
    let folder = Folder::new("make-failure");
    let (program, layouts) = (program_in(&folder), folder.path().join("layouts"));
    let made = recipe(&program).make(&layouts, &name()).expect("made");
    let script = folder.path().join("script");
    fs::write(&script, "#!/bin/sh\n").expect("written");
    let refused = recipe(&script).make(&layouts, &name()).expect_err("no program").to_string();
    assert!(refused.contains("no program for Linux"), "{refused}");
    let missing = Path::new("/nonexistent");
    assert!(Recipe { authorities: Some(missing), ..recipe(&program) }.make(&layouts, &name()).is_err());
    let left: Vec<_> =
        fs::read_dir(&layouts).expect("a folder").flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, [made.layout]);
}

#[test]
fn what_is_made_again_is_the_same_folder_and_what_differs_is_beside_it() {
    let folder = Folder::new("make-again");
    let (program, layouts) = (program_in(&folder), folder.path().join("layouts"));
    let first = recipe(&program).make(&layouts, &name()).expect("made");
    let written = fs::metadata(first.layout.join(INDEX_FILE)).expect("there").ino();
    assert_eq!(recipe(&program).make(&layouts, &name()).expect("made"), first);
    assert_eq!(
        fs::metadata(first.layout.join(INDEX_FILE)).expect("there").ino(),
        written,
        "it is left alone"
    );
    let other = [Reference::parse("registry.example/app:v2").expect("a name")];
    let second = recipe(&program).make(&layouts, &other).expect("made");
    assert_eq!(second.digest, first.digest, "a name does not change the image");
    assert!(second.layout != first.layout && first.layout.is_dir());
}

#[test]
fn an_archive_is_replaced_when_the_new_one_is_whole() {
    let folder = Folder::new("make-archive");
    let (program, archive) = (program_in(&folder), folder.path().join("image.tar"));
    let made = recipe(&program).make(&folder.path().join("layouts"), &name()).expect("made");
    fs::write(&archive, "the old one").expect("written");
    let layer = fs::read_dir(made.layout.join("blobs/sha256")).expect("blobs").flatten().next().expect("one");
    let content = fs::read(layer.path()).expect("there");
    fs::remove_file(layer.path()).expect("removed");
    export(&made.layout, &archive).expect_err("a blob is missing");
    assert_eq!(fs::read(&archive).expect("there"), b"the old one");
    fs::write(layer.path(), content).expect("written");
    export(&made.layout, &archive).expect("written");
    assert_ne!(fs::read(&archive).expect("there"), b"the old one");
    let left = fs::read_dir(folder.path()).expect("a folder").flatten();
    assert!(!left.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with('.')));
}
