//! Warnings of a volume whose files stand in each other's way (`warningsForOverlappingVirtualPaths`).

use super::super::at::At;

/// A file of a volume, and where it comes from.
struct File {
    path: String,
    source: String,
}

impl std::fmt::Display for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.source.is_empty() {
            write!(f, "{:?}", self.path)
        } else {
            write!(f, "{:?} ({})", self.path, self.source)
        }
    }
}

/// The files of one volume.
pub(super) fn of_volume(volume: &At<'_>, out: &mut Vec<String>) {
    let of = |source: &At<'_>, called: &str, out: &mut Vec<String>| {
        overlap(volume, called, &mut Vec::new(), files(source, ""), out);
    };
    let (map, secret) = (volume.get("configMap"), volume.get("secret"));
    of(&map, &format!("ConfigMap {:?}", map.get("name").text()), out);
    of(&secret, &format!("Secret {:?}", secret.get("secretName").text()), out);
    of(&volume.get("downwardAPI"), "DownwardAPI", out);
    let mut all = Vec::new();
    for source in volume.dig(&["projected", "sources"]).items() {
        if source.is_empty() {
            out.push(format!("volume {:?} (Projected) has no sources provided", volume.get("name").text()));
            continue;
        }
        overlap(volume, "Projected", &mut all, projected(&source), out);
    }
}

fn files(source: &At<'_>, called: &str) -> Vec<File> {
    let paths = source.get("items").items().map(|item| item.get("path").text());
    paths.map(|path| file(path, called)).collect()
}

fn file(path: &str, source: &str) -> File {
    File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
}

fn projected(source: &At<'_>) -> Vec<File> {
    let (map, secret, api) = (source.get("configMap"), source.get("secret"), source.get("downwardAPI"));
    let (token, bundle, certificate) =
        (source.get("serviceAccountToken"), source.get("clusterTrustBundle"), source.get("podCertificate"));
    if !map.get("items").is_empty() {
        files(&map, &format!("ConfigMap {:?}", map.get("name").text()))
    } else if !secret.get("items").is_empty() {
        files(&secret, &format!("Secret {:?}", secret.get("name").text()))
    } else if !api.get("items").is_empty() {
        files(&api, "DownwardAPI")
    } else if token.is_set() {
        vec![file(token.get("path").text(), "ServiceAccountToken")]
    } else if bundle.is_set() {
        let name = if bundle.get("name").is_set() { bundle.get("name") } else { bundle.get("signerName") };
        vec![file(bundle.get("path").text(), &format!("ClusterTrustBundle {:?}", name.text()))]
    } else {
        [
            ("certificateChainPath", "PodCertificate chain"),
            ("keyPath", "PodCertificate key"),
            ("credentialBundlePath", "PodCertificate credential bundle"),
        ]
        .iter()
        .filter(|(field, _)| !certificate.get(field).is_empty())
        .map(|(field, called)| file(certificate.get(field).text(), called))
        .collect()
    }
}

/// Adds files to those of the volume that were looked at, which each is compared with.
fn overlap(volume: &At<'_>, called: &str, known: &mut Vec<File>, files: Vec<File>, out: &mut Vec<String>) {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for file in files.into_iter().filter(|file| !file.path.is_empty()) {
        for other in known.iter() {
            if within(&file.path, &other.path) || within(&other.path, &file.path) {
                out.push(format!(
                    "volume {:?} ({called}): overlapping paths: {file} with {other}",
                    volume.get("name").text()
                ));
            }
        }
        known.push(file);
    }
}
