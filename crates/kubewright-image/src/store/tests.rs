//! Images loaded into a store of a test, and what is left when they go.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use super::*;
use crate::testing::{self, Folder, TestImage, TestLayer, gzip};

/// An image with one file, whose content is this text.
fn image(text: &str) -> TestImage {
    let layers =
        [TestLayer::new().folder("bin", 0o755), TestLayer::new().file("bin/text", 0o755, text.as_bytes())];
    TestImage::new(&layers, &json!({"Cmd": ["/bin/text"], "Env": ["A=b"]}))
}

/// A store in a folder of a test.
struct Test {
    folder: Folder,
    store: Store,
}

impl Test {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let store = Store::open(&folder.path().join("store")).expect("a store");
        Self { folder, store }
    }

    fn layout(&self) -> PathBuf {
        let layout = self.folder.path().join("layout");
        let _ = fs::remove_dir_all(&layout);
        fs::create_dir(&layout).expect("made");
        layout
    }

    /// Loads an image under these names.
    fn load(&self, image: &TestImage, names: &[&str]) -> Vec<Loaded> {
        let layout = self.layout();
        image.layout(&layout, names).expect("written");
        self.store.load(Source::Path(&layout), None).expect("loaded")
    }

    fn get(&self, name: &str) -> Option<Image> {
        self.store.get(&reference(name)).expect("read")
    }

    /// The names of all images.
    fn names(&self) -> Vec<Vec<String>> {
        let familiar = |image: Image| image.references.iter().map(Reference::familiar).collect();
        self.store.list().expect("read").into_iter().map(familiar).collect()
    }

    /// How much there is in the folders of the store: blobs, unpacked images, unfinished ones.
    fn counts(&self) -> (usize, usize, usize) {
        let count = |folder: PathBuf| fs::read_dir(folder).map_or(0, Iterator::count);
        (count(self.store.blobs()), count(self.store.roots()), count(self.store.incoming()))
    }

    /// Loads what cannot be loaded, and gives what is said.
    fn refusal(&self, source: Source<'_>) -> String {
        let before = self.counts();
        let told = self.store.load(source, None).expect_err("refused").to_string();
        assert_eq!((self.counts(), told.lines().count()), (before, 1), "{told}");
        told
    }
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).expect("a reference")
}

fn text(root: &Path) -> String {
    fs::read_to_string(root.join("bin/text")).expect("a file")
}

#[test]
fn an_image_is_found_by_all_that_it_is_called() {
    let test = Test::new("find");
    let built = image("one");
    let loaded = test.load(&built, &["busybox", "registry.local:5000/team/app:v1"]);
    assert_eq!(loaded.len(), 1);
    assert_eq!(loaded[0].names, [reference("busybox"), reference("registry.local:5000/team/app:v1")]);
    let image = test.get("docker.io/library/busybox:latest").expect("there");
    assert_eq!((image.id, &image), (built.id(), &loaded[0].image));
    assert_eq!(image.references, [reference("busybox"), reference("registry.local:5000/team/app:v1")]);
    assert_eq!(image.config.cmd, ["/bin/text"]);
    assert_eq!(image.config.env, [("A".to_owned(), "b".to_owned())]);
    let manifest = image.repo_digests[0].digest().expect("by digest").to_owned();
    assert_eq!(image.repo_digests[0].to_string(), format!("docker.io/library/busybox@{manifest}"));
    for text in [
        "busybox",
        "registry.local:5000/team/app:v1",
        &format!("busybox@{manifest}"),
        &format!("busybox:other@{manifest}"),
        &manifest,
        &image.id.to_string(),
        &image.id.hex(),
        &image.id.hex()[..12],
    ] {
        assert_eq!(test.store.find(text).expect("read"), Some(image.clone()), "{text}");
    }
    for text in
        ["busybox:v1", "app:v1", &format!("other@{manifest}"), &format!("busybox@{}", Digest::of(b"")), "abc"]
    {
        assert_eq!(test.store.find(text).expect("read"), None, "{text}");
    }
    let told = test.store.find("Upper Case").expect_err("no name").to_string();
    assert!(told.contains("must be lowercase"), "{told}");
}

#[test]
fn every_form_of_an_image_loads_as_the_same_image() {
    let built = image("forms");
    let zstd = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
    let (layout, tar) = (Folder::new("forms-layout"), Folder::new("forms-tar"));
    built.layout(layout.path(), &["app"]).expect("written");
    let path = tar.path().join("layout.tar");
    testing::archive_folder(layout.path(), &path).expect("written");
    let (oci, docker) = (fs::read(&path).expect("read"), built.docker_save(&["app:latest"]));
    for (form, bytes) in [
        ("layout", oci.clone()),
        ("layout, gzip", gzip(&oci)),
        ("layout, zstd", zstd(&oci)),
        ("docker", docker.clone()),
        ("docker, gzip", gzip(&docker)),
        ("docker, layers of gzip", built.clone().compressed(gzip).docker_save(&["app:latest"])),
        ("docker, layers of zstd", built.clone().compressed(zstd).docker_save(&["app:latest"])),
    ] {
        let test = Test::new("forms");
        let loaded = test.store.load(Source::Stream(&mut &bytes[..]), None).expect(form);
        assert_eq!(
            (loaded[0].image.id, &loaded[0].names[..]),
            (built.id(), &[reference("app")][..]),
            "{form}"
        );
        assert_eq!(text(&test.store.root(&loaded[0].image).expect(form)), "forms", "{form}");
        fs::write(test.folder.path().join("file"), &bytes).expect("written");
        let again = test.store.load(Source::Path(&test.folder.path().join("file")), None).expect(form);
        assert_eq!(again, loaded, "{form}");
    }
}

#[test]
fn a_name_that_is_given_replaces_those_of_the_archive() {
    let test = Test::new("name");
    let layout = test.layout();
    image("one").layout(&layout, &["app:v1", "app:v2"]).expect("written");
    let loaded = test.store.load(Source::Path(&layout), Some(&reference("mine:v3"))).expect("loaded");
    assert_eq!(loaded[0].names, [reference("mine:v3")]);
    assert_eq!(test.names(), [["mine:v3"]]);
    let two = [image("one").blobs(&layout).expect("written"), image("two").blobs(&layout).expect("written")];
    testing::index(&layout, &two).expect("written");
    let told = test.store.load(Source::Path(&layout), Some(&reference("mine"))).expect_err("two").to_string();
    assert!(told.contains("2 images"), "{told}");
}

#[test]
fn a_tag_alone_names_nothing_and_a_whole_reference_does() {
    let test = Test::new("ref-name");
    for (annotation, names) in [("v1", vec![]), ("app:v1", vec![reference("app:v1")])] {
        let layout = test.layout();
        let mut manifest = image(annotation).blobs(&layout).expect("written");
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": annotation});
        testing::index(&layout, &[manifest]).expect("written");
        assert_eq!(test.store.load(Source::Path(&layout), None).expect("loaded")[0].names, names);
    }
    assert_eq!(test.names(), [vec!["app:v1".to_owned()], vec![]]);
}

#[test]
fn several_images_with_several_names_come_out_of_one_archive() {
    let test = Test::new("several");
    let (one, two) = (image("one"), image("two"));
    let layout = test.layout();
    let named = |image: &TestImage, name: &str| {
        let mut manifest = image.blobs(&layout).expect("written");
        manifest["annotations"] = json!({"io.containerd.image.name": name});
        manifest
    };
    testing::index(&layout, &[named(&one, "one:a"), named(&two, "two:b"), named(&one, "one:c")])
        .expect("written");
    assert_eq!(test.store.load(Source::Path(&layout), None).expect("loaded").len(), 2);
    assert_eq!(test.names(), [vec!["one:a", "one:c"], vec!["two:b"]]);
    assert_eq!(
        test.counts().0,
        2 * 2 + 3,
        "a manifest and a configuration each, and a layer that they share"
    );
}

/// A list of builds, as a blob.
fn list(layout: &Path, builds: &[(Value, &str)]) -> Value {
    let manifests: Vec<Value> = builds
        .iter()
        .map(|(manifest, architecture)| {
            let mut manifest = manifest.clone();
            manifest["platform"] = json!({"os": "linux", "architecture": architecture});
            manifest
        })
        .collect();
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests});
    testing::blob(layout, media_type, index.to_string().as_bytes()).expect("written")
}

#[test]
fn of_several_builds_the_one_for_this_machine_is_taken() {
    let test = Test::new("platform");
    let layout = test.layout();
    let here = crate::platform::Platform::here().architecture;
    let (ours, theirs) = (image("ours"), image("theirs").built_for("vax"));
    let builds = [
        (theirs.blobs(&layout).expect("written"), "vax"),
        (ours.blobs(&layout).expect("written"), here.as_str()),
        (theirs.blobs(&layout).expect("written"), "unknown"),
    ];
    let mut outer = list(&layout, &[(list(&layout, &builds), &here)]);
    outer["annotations"] = json!({"io.containerd.image.name": "app"});
    testing::index(&layout, &[outer.clone()]).expect("written");
    let loaded = test.store.load(Source::Path(&layout), None).expect("loaded");
    assert_eq!(loaded[0].image.id, ours.id());
    let digest = outer["digest"].as_str().expect("a digest");
    assert_eq!(
        loaded[0].image.repo_digests,
        [reference(&format!("app@{digest}"))],
        "what the name stands for"
    );
    assert!(test.get(&format!("app@{digest}")).is_some());

    testing::index(&layout, &[list(&layout, &builds[..1])]).expect("written");
    let told = test.refusal(Source::Path(&layout));
    assert!(told.contains("no image for linux/") && told.contains("only for linux/vax"), "{told}");
    theirs.layout(&layout, &["app"]).expect("written");
    assert!(test.refusal(Source::Path(&layout)).contains("built for linux/vax"));
}

#[test]
fn what_is_not_whole_or_not_what_it_says_is_refused() {
    let test = Test::new("damaged");
    let fresh = || {
        let layout = test.layout();
        image("damaged").layout(&layout, &["app"]).expect("written");
        let manifest: Value =
            serde_json::from_slice(&fs::read(layout.join("index.json")).expect("read")).expect("JSON");
        let blob =
            |digest: &Value| layout.join("blobs").join(digest.as_str().expect("a digest").replace(':', "/"));
        let path = blob(&manifest["manifests"][0]["digest"]);
        let manifest: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
        (layout.clone(), [path, blob(&manifest["config"]["digest"]), blob(&manifest["layers"][1]["digest"])])
    };
    for at in 0..3 {
        let (layout, blobs) = fresh();
        let mut bytes = fs::read(&blobs[at]).expect("read");
        bytes[5] ^= 1;
        fs::write(&blobs[at], &bytes).expect("written");
        assert!(test.refusal(Source::Path(&layout)).contains("it is damaged"), "{at}");
        bytes.push(b' ');
        fs::write(&blobs[at], &bytes).expect("written");
        assert!(test.refusal(Source::Path(&layout)).contains("bytes and should have"), "{at}");
        fs::remove_file(&blobs[at]).expect("removed");
        let told = test.refusal(Source::Path(&layout));
        assert!(told.contains("missing") || told.contains("No such file"), "{at}: {told}");
    }
}

#[test]
fn what_is_no_image_is_told_plainly() {
    let test = Test::new("no-image");
    let tar = testing::archive(&[("README".to_owned(), b"hello".to_vec())]);
    for (bytes, told) in [
        (&tar[..], "it is no image: neither"),
        (b"", "it is no image: neither"),
        (&b"just text".repeat(100), "cannot be read as an archive"),
        (b"BZh91AY&SY", "bzip2"),
        (&gzip(&tar)[..30], "cannot be read as an archive"),
        (
            &testing::archive(&[("manifest.json".to_owned(), b"{".to_vec())]),
            "manifest.json is not as it should be",
        ),
        (&testing::archive(&[("manifest.json".to_owned(), b"[]".to_vec())]), "it holds no image"),
    ] {
        let refused = test.refusal(Source::Stream(&mut &bytes[..]));
        assert!(refused.contains(told), "{refused}");
    }
    let layout = test.layout();
    testing::index(&layout, &[testing::blob(&layout, "application/vnd.example", b"{}").expect("written")])
        .expect("written");
    assert!(test.refusal(Source::Path(&layout)).contains("application/vnd.example"));
    assert!(test.refusal(Source::Path(&layout.join("none"))).contains("No such file"));
}

#[test]
fn an_archive_of_docker_reads_no_file_beside_it() {
    let test = Test::new("docker-outside");
    let folder = test.layout();
    fs::write(test.folder.path().join("secret"), "{}").expect("written");
    for config in ["../secret", "/etc/hostname", "link/../../secret"] {
        let manifest = json!([{"Config": config, "RepoTags": ["a:b"], "Layers": []}]).to_string();
        fs::write(folder.join("manifest.json"), manifest).expect("written");
        assert!(test.refusal(Source::Path(&folder)).contains("not the name of a file in it"), "{config}");
    }
}

#[test]
fn more_than_the_limits_is_not_loaded() {
    let folder = Folder::new("load-limits");
    let limits = Limits { entries: 100, bytes: 2_000 };
    let store = Store::with_limits(&folder.path().join("store"), limits).expect("a store");
    let saved = gzip(&image("large").docker_save(&["app"]));
    let told = store.load(Source::Stream(&mut &saved[..]), None).expect_err("refused").to_string();
    assert!(told.contains("more than 2000 bytes, the limit"), "{told}");
}

#[test]
fn layers_that_are_links_in_an_old_archive_are_found() {
    let test = Test::new("links");
    let built = image("linked");
    let saved = built.docker_save(&["app"]);
    let folder = test.layout();
    tar::Archive::new(&saved[..]).unpack(&folder).expect("unpacked");
    let manifest = fs::read_to_string(folder.join("manifest.json")).expect("read");
    let layers: Value = serde_json::from_str(&manifest).expect("JSON");
    let layer = layers[0]["Layers"][0].as_str().expect("a name").to_owned();
    fs::create_dir(folder.join("other")).expect("made");
    symlink(format!("../{layer}"), folder.join("other/layer.tar")).expect("linked");
    fs::write(folder.join("manifest.json"), manifest.replace(&layer, "other/layer.tar")).expect("written");
    let path = test.folder.path().join("linked.tar");
    let mut builder = tar::Builder::new(fs::File::create(&path).expect("made"));
    builder.follow_symlinks(false);
    builder.append_dir_all("", &folder).and_then(|()| builder.finish()).expect("written");
    let loaded = test.store.load(Source::Path(&path), None).expect("loaded");
    assert_eq!(loaded[0].image.id, built.id());
}

#[test]
fn an_image_goes_with_its_last_name_and_takes_what_others_do_not_need() {
    let test = Test::new("remove");
    test.load(&image("one"), &["app:1", "app:one"]);
    test.load(&image("two"), &["app:2"]);
    let (one, two) = (test.get("app:1").expect("there"), test.get("app:2").expect("there"));
    let root = test.store.root(&two).expect("unpacked");
    assert_eq!(test.counts(), (7, 1, 0));

    let removed = test.store.remove("app:one").expect("changed").expect("there");
    assert_eq!(removed, Removed { names: vec![reference("app:one")], image: None });
    assert_eq!(test.store.remove("app:one").expect("changed"), None);
    let removed = test.store.remove("app:1").expect("changed").expect("there");
    assert_eq!(removed, Removed { names: vec![reference("app:1")], image: Some(one.id) });
    assert_eq!((test.names(), test.counts()), (vec![vec!["app:2".to_owned()]], (4, 1, 0)));
    assert_eq!(text(&root), "two");

    test.store.remove(&two.id.hex()[..12]).expect("changed").expect("there");
    assert_eq!((test.names().len(), test.counts()), (0, (0, 1, 0)), "its files are in use");
    assert_eq!(text(&root), "two");
    let Test { folder, store } = test;
    drop(store);
    let store = Store::open(&folder.path().join("store")).expect("a store");
    let test = Test { folder, store };
    test.load(&image("three"), &["app:3"]);
    assert_eq!(test.counts(), (4, 0, 0));
}

#[test]
fn an_id_stands_for_all_names() {
    let test = Test::new("remove-id");
    let id = test.load(&image("one"), &["a:1", "b:2"])[0].image.id;
    let removed = test.store.remove(&id.to_string()).expect("changed").expect("there");
    assert_eq!(removed, Removed { names: vec![reference("a:1"), reference("b:2")], image: Some(id) });
    assert_eq!(test.counts(), (0, 0, 0));
}

#[test]
fn an_image_that_loses_its_last_name_to_another_goes() {
    let test = Test::new("replace");
    test.load(&image("old"), &["app"]);
    test.load(&image("new"), &["app"]);
    assert_eq!((test.names(), test.counts().0), (vec![vec!["app:latest".to_owned()]], 4));
    test.load(&image("new"), &[]);
    assert_eq!(test.names(), [["app:latest"]], "it has a name already");
}

#[test]
fn an_image_without_a_name_is_kept_until_it_is_removed_or_named() {
    let test = Test::new("unnamed");
    let id = test.load(&image("one"), &[])[0].image.id;
    assert_eq!(test.names(), [Vec::<String>::new()]);
    test.load(&image("one"), &["app"]);
    assert_eq!(test.names(), [["app:latest"]]);
    test.store.remove("app").expect("changed").expect("there");
    let again = test.load(&image("one"), &[])[0].image.id;
    assert_eq!(again, id);
    let removed = test.store.remove(&id.hex()).expect("changed").expect("there");
    assert_eq!(removed, Removed { names: vec![], image: Some(id) });
}

#[test]
fn the_beginning_of_two_ids_is_told() {
    let test = Test::new("ambiguous");
    let layers = |count: u32| TestImage::new(&[], &json!({"Labels": {"count": count.to_string()}}));
    let mut seen = BTreeMap::<String, u32>::new();
    let (one, two, prefix) = (0..)
        .find_map(|count| {
            let prefix = layers(count).id().hex()[..4].to_owned();
            seen.insert(prefix.clone(), count).map(|other| (other, count, prefix))
        })
        .expect("there are only 65,536");
    test.load(&layers(one), &[]);
    test.load(&layers(two), &[]);
    let told = test.store.find(&prefix).expect_err("two").to_string();
    assert!(told.contains(&prefix) && told.contains("2 images"), "{told}");
}

#[test]
fn images_are_unpacked_once_for_all_who_ask_and_share_layers() {
    let test = Test::new("shared");
    test.load(&image("same"), &["one"]);
    let layers = [TestLayer::new().folder("bin", 0o755), TestLayer::new().file("bin/text", 0o755, b"same")];
    test.load(&TestImage::new(&layers, &json!({"User": "1000"})), &["two"]);
    let (one, two) = (test.get("one").expect("there"), test.get("two").expect("there"));
    assert_ne!(one.id, two.id);
    let roots: Vec<PathBuf> = std::thread::scope(|scope| {
        let ask = |image: &Image| test.store.clone().root(image).expect("unpacked");
        let asked: Vec<_> =
            [&one, &two, &one, &two].map(|image| scope.spawn(move || ask(image))).into_iter().collect();
        asked.into_iter().map(|asked| asked.join().expect("it ends")).collect()
    });
    assert!(roots.iter().all(|root| *root == roots[0]), "{roots:?}");
    assert_eq!(test.counts(), (6, 1, 0));
    let again = Store::open(test.store.folder()).expect("a store");
    assert_eq!(again.root(&one).expect("unpacked"), roots[0]);
}

#[test]
fn a_layer_that_cannot_be_unpacked_leaves_nothing() {
    let test = Test::new("bad-layer");
    let bad = TestImage::new(&[TestLayer::new().file("../out", 0o644, b"")], &json!({}));
    let image = test.load(&bad, &["bad"]).remove(0).image;
    let told = test.store.root(&image).expect_err("refused").to_string();
    assert!(
        told.contains(&image.layers[0].digest.to_string()) && told.contains("leads out of the image"),
        "{told}"
    );
    assert_eq!(test.counts(), (3, 0, 0));
    let removed = image.clone();
    test.store.remove("bad").expect("changed").expect("there");
    assert!(matches!(test.store.root(&removed), Err(Error::Gone(id)) if id == image.id));
}

#[test]
fn an_unpacked_image_whose_folders_are_closed_can_be_removed() {
    let test = Test::new("closed");
    let layer =
        TestLayer::new().folder("closed", 0o000).folder("closed/below", 0o000).file("closed/below/x", 0, b"");
    let image = test.load(&TestImage::new(&[layer], &json!({})), &["closed"]).remove(0).image;
    let root = test.store.root(&image).expect("unpacked");
    assert_eq!(fs::metadata(root.join("closed")).expect("there").permissions().mode() & 0o777, 0);
    test.store.shared.held.lock().expect("not poisoned").clear();
    test.store.remove("closed").expect("changed").expect("there");
    assert_eq!(test.counts(), (0, 0, 0));
}

#[test]
fn what_a_process_left_that_ended_in_the_middle_is_removed() {
    let test = Test::new("crash");
    test.load(&image("one"), &["app"]);
    let left = test.store.incoming().join("1-0");
    fs::create_dir_all(left.join("0/rootfs")).expect("made");
    fs::write(left.join("in-use"), "").expect("written");
    fs::write(left.join("1"), "half a layer").expect("written");
    fs::write(test.store.blobs().join(Digest::of(b"orphan").hex()), "orphan").expect("written");
    fs::write(test.store.folder().join("index.json.new"), "{").expect("written");
    let busy = test.store.workspace().expect("a workspace");
    fs::write(busy.path(), "being written").expect("written");
    assert_eq!((test.counts(), test.names()), ((5, 0, 2), vec![vec!["app:latest".to_owned()]]));

    test.load(&image("two"), &["other"]);
    assert_eq!(test.counts(), (7, 0, 1), "what is in use stays");
    drop(busy);
    assert_eq!(test.counts().2, 0);
}

#[test]
fn loads_by_several_at_the_same_time_all_count() {
    let test = Test::new("parallel");
    let path = test.store.folder();
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let store = Store::open(path).expect("a store");
                let saved = image(&number.to_string()).docker_save(&[&format!("app:{number}")]);
                store.load(Source::Stream(&mut &saved[..]), None).expect("loaded");
                if number % 2 == 0 {
                    store.remove(&format!("app:{number}")).expect("changed").expect("there");
                }
            });
        }
    });
    assert_eq!(test.names(), [["app:1"], ["app:3"], ["app:5"], ["app:7"]]);
    assert_eq!(test.counts(), (4 * 3 + 1, 0, 0));
}

#[test]
fn a_damaged_store_says_so_and_the_remedy_works() {
    let test = Test::new("store-damaged");
    let loaded = test.load(&image("one"), &["app"]).remove(0).image;
    let config = test.store.blobs().join(loaded.id.hex());
    fs::write(&config, "{}").expect("written");
    for told in
        [test.store.list().expect_err("damaged"), test.store.get(&reference("app")).expect_err("damaged")]
    {
        assert!(
            told.to_string().contains("is damaged") && told.to_string().contains("load it again"),
            "{told}"
        );
    }
    test.load(&image("one"), &["app"]);
    assert_eq!(test.names(), [["app:latest"]], "loading repairs");
    fs::remove_file(&config).expect("removed");
    test.store.remove("app").expect("changed").expect("there");
    assert_eq!((test.names().len(), test.counts()), (0, (0, 0, 0)));
    fs::write(test.store.folder().join("index.json"), "nonsense").expect("written");
    assert!(test.store.list().expect_err("damaged").to_string().contains("index.json"));
}

#[test]
fn a_store_is_an_image_layout_that_another_store_loads() {
    let test = Test::new("layout");
    test.load(&image("one"), &["app:1"]);
    test.load(&image("two"), &["app:2"]);
    let other = Test::new("layout-other");
    other.store.load(Source::Path(test.store.folder()), None).expect("loaded");
    assert_eq!(other.store.list().expect("read"), test.store.list().expect("read"));
}

#[test]
fn only_this_user_may_look_into_what_is_unpacked_also_where_the_store_is_open() {
    let folder = Folder::new("mode");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let (made, open) = (folder.path().join("made"), folder.path().join("open"));
    Store::open(&made).expect("a store");
    assert_eq!(mode(&made), 0o700);
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("opened");
    let store = Store::open(&open).expect("a store");
    let saved = image("one").docker_save(&["app"]);
    let loaded = store.load(Source::Stream(&mut &saved[..]), None).expect("loaded");
    store.root(&loaded[0].image).expect("unpacked");
    assert_eq!((mode(&store.roots()), mode(&store.incoming())), (0o700, 0o700));
}

#[test]
fn the_default_store_is_the_users_own() {
    let of = |variables: &[(&str, &str)]| {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        default_path(|name| find(name).map(|(_, value)| OsString::from(value)))
    };
    let home = ("HOME", "/home/me");
    assert_eq!(of(&[home]), Some("/home/me/.local/share/kubewright/images".into()));
    assert_eq!(of(&[home, ("XDG_DATA_HOME", "/data")]), Some("/data/kubewright/images".into()));
    assert_eq!(
        of(&[home, ("XDG_DATA_HOME", "data")]),
        Some("/home/me/.local/share/kubewright/images".into())
    );
    assert_eq!(of(&[home, ("KUBEWRIGHT_IMAGES", "here")]), Some("here".into()));
    assert_eq!(
        of(&[home, ("KUBEWRIGHT_IMAGES", "")]),
        Some("/home/me/.local/share/kubewright/images".into())
    );
    assert_eq!(of(&[]), None);
}

#[test]
fn a_busybox_of_this_machine_is_an_image() {
    let Some(busybox) = TestImage::busybox(&["sh", "echo"]) else { return };
    let test = Test::new("busybox");
    let image = test.load(&busybox, &["busybox"]).remove(0).image;
    let root = test.store.root(&image).expect("unpacked");
    assert!(root.join("bin/echo").is_file());
}
