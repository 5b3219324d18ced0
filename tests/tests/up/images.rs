//! Stores of images for nodes that run processes, each of one test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubewright_tests::needed;
use serde_json::json;

/// The commands of busybox that its image has.
const COMMANDS: [&str; 8] = ["sh", "echo", "sleep", "cat", "httpd", "id", "date", "hostname"];

/// A store of images of its own; gone when dropped.
pub(crate) struct Images(PathBuf);

impl Images {
    /// With `busybox:latest` in it.
    pub(crate) fn with_busybox(test: &str) -> Self {
        Self::with(test, "busybox:latest", "/bin", |root| {
            let bin = root.join("bin");
            fs::create_dir_all(&bin).expect("a folder");
            fs::copy(needed("BUSYBOX"), bin.join("busybox")).expect("busybox is copied");
            for command in COMMANDS {
                symlink("busybox", bin.join(command)).expect("a link");
            }
        })
    }

    /// With one image in it, of the files that `fill` puts into a folder; its programs are looked for in `path`.
    pub(crate) fn with(test: &str, name: &str, path: &str, fill: impl FnOnce(&Path)) -> Self {
        let folder = std::env::temp_dir().join(format!("kubewright-images-{test}-{}", std::process::id()));
        let (root, archive) = (folder.join("root"), folder.join("image.tar"));
        fs::create_dir_all(&root).expect("a folder");
        fill(&root);
        save(&folder, &archive, name, path);
        let images = Self(folder);
        let loaded = Command::new(needed("KUBEWRIGHT"))
            .args(["image", "load", "--image-store"])
            .arg(images.store())
            .arg(&archive)
            .output()
            .expect("kubewright starts");
        let told = String::from_utf8_lossy(&loaded.stdout);
        assert!(told.starts_with(&format!("Loaded docker.io/library/{name}")), "{told} {loaded:?}");
        images
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the files in `root` as `docker save` does.
fn save(folder: &Path, archive: &Path, name: &str, path: &str) {
    let (root, saved) = (folder.join("root"), folder.join("saved"));
    fs::create_dir_all(&saved).expect("a folder");
    let mut names: Vec<_> =
        fs::read_dir(&root).expect("files").map(|file| file.expect("a file").file_name()).collect();
    names.sort();
    let names: Vec<&str> = names.iter().map(|name| name.to_str().expect("text")).collect();
    tar(&root, &saved.join("layer.tar"), &names);
    let layer = fs::read(saved.join("layer.tar")).expect("the layer is there");
    let digest = ring::digest::digest(&ring::digest::SHA256, &layer);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {"Env": [format!("PATH={path}")]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
    });
    fs::write(saved.join("config.json"), config.to_string()).expect("it is written");
    let manifest = json!([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]);
    fs::write(saved.join("manifest.json"), manifest.to_string()).expect("it is written");
    tar(&saved, archive, &["manifest.json", "config.json", "layer.tar"]);
}

fn tar(folder: &Path, archive: &Path, names: &[&str]) {
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(folder)
        .args(["--owner=0", "--group=0", "--numeric-owner", "-cf"])
        .arg(archive)
        .args(names);
    assert!(tar.status().expect("tar starts").success());
}
