//! The images that the tests ask for, made of what packages have: no registry is asked.
//!
//! All of them have one layer, with a static busybox, `agnhost` of the release, and what tests run beside them (bash, curl, a netcat, dig and getent); some have
//! another with a program of their own, or with what their web servers show. Process pods share the network of the machine, where a program that listens on all
//! addresses would take its port from all pods: programs are built to listen on the address of their pod then.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{busybox, programs::Programs};
use crate::run::{find, run};

/// An image: how its name ends, its user, its entry point and its arguments.
struct Image {
    name: &'static str,
    user: &'static str,
    entrypoint: &'static [&'static str],
    arguments: &'static [&'static str],
}

const fn image(
    name: &'static str,
    user: &'static str,
    entrypoint: &'static [&'static str],
    arguments: &'static [&'static str],
) -> Image {
    Image { name, user, entrypoint, arguments }
}

/// What is made; the tests name some more, which need what no package has (perl, a server of NFS, ...).
const IMAGES: &[Image] = &[
    image("agnhost", "", &["/agnhost"], &["pause"]),
    image("busybox", "", &[], &["sh"]),
    image("etcd", "", &[], &["/usr/local/bin/etcd"]),
    image("jessie-dnsutils", "", &[], &["sh"]),
    image("kitten", "", &["/agnhost"], &["test-webserver"]),
    image("nautilus", "", &["/agnhost"], &["test-webserver"]),
    image(
        "nginx",
        "",
        &[],
        &["sh", "-c", "exec httpd -f -p $KUBEWRIGHT_POD_ADDRESS:80 -h /usr/share/nginx/html"],
    ),
    image("nonewprivs", "", &[], &["nnp"]),
    image("nonroot", "1234", &[], &["sh"]),
    image("pause", "", &["/agnhost"], &["pause"]),
    image("sample-apiserver", "", &["/sample-apiserver"], &[]),
];

/// Programs that one image has alone: the image, the program's name, and where it is.
const OWN: &[(&str, &str, &str)] =
    &[("etcd", "etcd", "usr/local/bin/etcd"), ("sample-apiserver", "sample-apiserver", "sample-apiserver")];

/// How a layer is written: the same files give the same bytes.
const SORTED: [&str; 5] = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];

/// Files of the layer that say who and where one is.
const FILES: &[(&str, &str)] = &[
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    ),
    (
        "etc/group",
        "root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\nnogroup:x:65534:\n",
    ),
    ("etc/nsswitch.conf", "hosts: files dns\n"),
    ("etc/os-release", "ID=conformance\nNAME=conformance\n"),
    ("usr/share/nginx/html/index.html", "Welcome to nginx!\n"),
];

/// Makes the images and loads them into a store of this kubewright in `folder`; one that is there stays.
///
/// # Errors
/// When a package cannot be had, a program cannot be built, or the store refuses an image.
pub(super) fn store(programs: &Programs, kubewright: &Path, folder: &Path) -> Result<PathBuf> {
    let store = folder.join("store");
    let done = folder.join("done");
    if done.is_file() {
        return Ok(store);
    }
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let in_pods = Programs::in_pods()?;
    fill(&root, &in_pods)?;
    let layer = folder.join("layer.tar");
    run(Command::new("tar").args(SORTED).arg("-C").arg(&root).arg("-cf").arg(&layer).arg("."))?;
    let named = named(&programs.images()?);
    let archive = archive(folder, &layer, &named, &in_pods)?;
    run(Command::new(kubewright).args(["image", "load", "--image-store"]).arg(&store).arg(&archive))?;
    fs::write(done, "")?;
    Ok(store)
}

/// The images that can be made, each with the names by which the tests ask for it.
fn named(asked: &[String]) -> Vec<(&'static Image, Vec<String>)> {
    let of = |image: &Image| -> Vec<String> {
        let ends = |name: &&String| {
            name.rsplit('/').next().and_then(|last| last.split(':').next()) == Some(image.name)
        };
        asked.iter().filter(ends).cloned().collect()
    };
    IMAGES.iter().map(|image| (image, of(image))).filter(|(_, names)| !names.is_empty()).collect()
}

/// What is in the layer.
fn fill(root: &Path, programs: &Programs) -> Result<()> {
    for folder in [
        "bin",
        "usr/bin",
        "usr/local/bin",
        "etc",
        "tmp",
        "root",
        "home",
        "uploads",
        "var/run",
        "proc",
        "sys",
        "dev",
    ] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    for (path, text) in FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, text)?;
    }
    fs::copy(programs.path("agnhost"), root.join("agnhost"))?;
    symlink("agnhost", root.join("agnhost-2"))?;
    // What its web servers show and speak TLS with.
    let porter = Programs::sources()?.join("test/images/agnhost/porter");
    for file in ["localhost.crt", "localhost.key"] {
        fs::write(root.join(file), fs::read(porter.join(file))?)?;
    }
    let privileged = root.join("usr/local/bin/nnp");
    fs::copy(programs.path("nnp"), &privileged)?;
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755))?;
    let busybox = busybox::upstream()?;
    fs::copy(&busybox, root.join("bin/busybox"))?;
    let applets = Command::new(&busybox).arg("--list").output()?;
    for applet in String::from_utf8(applets.stdout)?.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    for program in ["bash", "curl", "dig", "getent", "nc.openbsd"] {
        with_libraries(root, program)?;
    }
    let netcat = root.join("bin/nc");
    fs::remove_file(&netcat)?;
    symlink("/usr/bin/nc.openbsd", netcat)?;
    Ok(())
}

/// The layer of an image's own: a program, or what a web server of the tests of `kubectl` shows. Most have none.
fn own(folder: &Path, image: &Image, programs: &Programs) -> Result<Option<String>> {
    let pages = Programs::sources()?.join("test/images").join(image.name).join("html");
    let root = match OWN.iter().find(|(of, ..)| *of == image.name) {
        Some((_, program, place)) => {
            let root = folder.join("own").join(image.name);
            let place = root.join(place);
            fs::create_dir_all(place.parent().unwrap_or(&root))?;
            fs::copy(programs.path(program), place)?;
            root
        }
        None if pages.is_dir() => pages,
        None => return Ok(None),
    };
    let name = format!("{}.tar", image.name);
    run(Command::new("tar").args(SORTED).arg("-C").arg(root).arg("-cf").arg(folder.join(&name)).arg("."))?;
    Ok(Some(name))
}

/// A program of this machine with the libraries that its loader finds.
fn with_libraries(root: &Path, name: &str) -> Result<()> {
    let program = find(name).with_context(|| {
        format!("there is no {name} (apt-get install bind9-dnsutils curl libc-bin netcat-openbsd)")
    })?;
    let listed = Command::new("ldd").arg(&program).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
    fs::copy(&program, root.join("usr/bin").join(name))?;
    for library in libraries {
        let to = root.join(library.strip_prefix("/").unwrap_or(library));
        fs::create_dir_all(to.parent().unwrap_or(root))?;
        fs::copy(library, to)?;
    }
    Ok(())
}

/// The images as `docker save` writes them.
fn archive(
    folder: &Path,
    layer: &Path,
    images: &[(&Image, Vec<String>)],
    programs: &Programs,
) -> Result<PathBuf> {
    let common = sha256(layer)?;
    let mut manifest = Vec::new();
    let mut files = vec!["manifest.json".to_owned(), "layer.tar".to_owned()];
    for (image, names) in images {
        let (mut layers, mut digests) = (vec!["layer.tar".to_owned()], vec![common.clone()]);
        if let Some(own) = own(folder, image, programs)? {
            digests.push(sha256(&folder.join(&own))?);
            layers.push(own.clone());
            files.push(own);
        }
        let file = format!("{}.json", image.name);
        fs::write(folder.join(&file), config(image, &digests).to_string())?;
        manifest.push(json!({ "Config": file, "RepoTags": names, "Layers": layers }));
        files.push(file);
    }
    fs::write(folder.join("manifest.json"), Value::from(manifest).to_string())?;
    let archive = folder.join("images.tar");
    run(Command::new("tar").arg("-C").arg(folder).arg("-cf").arg(&archive).args(&files))?;
    Ok(archive)
}

fn config(image: &Image, layers: &[String]) -> Value {
    let layers: Vec<String> = layers.iter().map(|digest| format!("sha256:{digest}")).collect();
    json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": image.user,
            "WorkingDir": "/",
            "Entrypoint": image.entrypoint,
            "Cmd": image.arguments,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        },
        "rootfs": { "type": "layers", "diff_ids": layers },
    })
}

fn sha256(file: &Path) -> Result<String> {
    let output = Command::new("sha256sum").arg(file).output().context("cannot run sha256sum")?;
    match String::from_utf8(output.stdout)?.split_whitespace().next() {
        Some(digest) if output.status.success() => Ok(digest.to_owned()),
        _ => bail!("sha256sum {} failed", file.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_each_name_by_which_it_is_asked_for() {
        let asked = ["r/e2e/agnhost:2.55", "r/e2e/agnhost:2.63.0", "r/agnhost-private:1", "r/perl:5"]
            .map(str::to_owned);
        let named = named(&asked);
        assert_eq!(named.len(), 1);
        assert_eq!((named[0].0.name, named[0].1.len()), ("agnhost", 2));
    }
}
