//! A real memcached under its operator: Debian's, as an image for a node that runs processes.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{IpAddr, TcpStream, ToSocketAddrs},
    path::Path,
    process::Command,
};

use kubewright_tests::{Up, needed};

use crate::{images::Images, process::Ended};

/// The image that the operator takes unless it is told.
const IMAGE: &str = "memcached:1.6-alpine";

/// Beyond 1 and 6: it starts with the arguments that the operator gives it, says so in its `stats`, which are the condition
/// `Answering`, and answers at the endpoint of its Service; with its image pinned by digest, by way of the Service. (One pod: those of
/// such a node share the ports of this machine.)
#[tokio::test]
#[ignore = "needs kubectl and memcached: cargo xtask test"]
async fn mc_02_debians_memcached_answers_under_its_operator() {
    let images = Images::with("memcached", IMAGE, "/usr/bin", |root| {
        copy_with_libraries(&needed("MEMCACHED"), &root.join("usr/bin"), root);
    });
    let store = images.store().display().to_string();
    let up = Up::start("memcached", &["--runtime", "process", "--image-store", &store, "--samples"]);
    up.eventually("get memcacheds example-memcached -o name", |name| !name.is_empty()).await;
    let change = |spec: &str| {
        up.kubectl(&format!("patch memcacheds example-memcached --type merge -p {{\"spec\":{{{spec}}}}}"))
    };
    let pods = "get pods -l memcached_cr=example-memcached -o name";
    // At zero in between, as one pod at a time can have the port: the sample asks for three.
    let _ = change("\"size\":0");
    up.eventually("get deployments example-memcached -o jsonpath={.spec.replicas}", |size| size == "0").await;
    up.eventually(pods, str::is_empty).await;
    let _ = change("\"size\":1,\"checkStats\":true");
    let says =
        "get memcacheds example-memcached -o jsonpath={.status.conditions[?(@.type==\"Answering\")].message}";
    up.eventually(says, |said| said.starts_with("1 pods answer: memcached 1.")).await;

    let ends = "get endpointslices -l kubernetes.io/service-name=example-memcached -o jsonpath={.items[0].endpoints[0].addresses[0]}";
    let address: IpAddr = up.kubectl(ends).parse().expect("an address");
    is_set_and_got((address, 11211));

    let image_id = "get pods -l memcached_cr=example-memcached -o jsonpath={.items[0].status.containerStatuses[0].imageID}";
    let pinned = up.kubectl(image_id);
    assert!(pinned.starts_with("docker.io/library/memcached@sha256:"), "{pinned}");
    let _ = change("\"size\":0");
    up.eventually(pods, str::is_empty).await;
    let _ = change(&format!("\"size\":1,\"image\":\"{pinned}\""));
    let images =
        "get pods -l memcached_cr=example-memcached -o jsonpath={.items[*].spec.containers[*].image}";
    up.eventually(images, |images| images == pinned).await;
    up.eventually("get memcacheds example-memcached -o jsonpath={.status.readyReplicas}", |ready| {
        ready == "1"
    })
    .await;
    let mut forward = Ended(up.start_kubectl("port-forward service/example-memcached :11211"));
    let mut told = String::new();
    // Kept, as kubectl ends when it cannot tell of connections any more.
    let mut output = BufReader::new(forward.0.stdout.take().expect("it is piped"));
    output.read_line(&mut told).expect("a line");
    // "Forwarding from 127.0.0.1:40000 -> 11211"
    is_set_and_got(told.split_whitespace().nth(2).expect("an address"));
    drop(output);
}

/// A value that is set is had again.
fn is_set_and_got(address: impl ToSocketAddrs) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"set greeting 0 0 5\r\nhello\r\nget greeting\r\n").expect("it is sent");
    let lines: Vec<String> =
        BufReader::new(stream).lines().take(4).map(|line| line.expect("a line")).collect();
    assert_eq!(lines, ["STORED", "VALUE greeting 0 5", "hello", "END"]);
}

/// Copies a program to a folder, and the libraries that it is linked with to where they are here, under `root`.
fn copy_with_libraries(program: &Path, folder: &Path, root: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    fs::copy(program, folder.join(program.file_name().expect("a name"))).expect("it is copied");
    let linked = Command::new("ldd").arg(program).output().expect("ldd starts");
    let linked = String::from_utf8(linked.stdout).expect("text");
    for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        fs::copy(library, copy).expect("it is copied");
    }
}
