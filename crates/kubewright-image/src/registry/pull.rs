//! Pulls an image into a layout of its own, and loads that (`spec.md`, Pulling).

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use http::{
    HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};

use super::{
    Event, RegistryError,
    http::{Request, next, read},
    session::Session,
};
use crate::{
    Digest, Error, Loaded, Reference, Source, Store,
    archive::best,
    digest::Hasher,
    make::write_index,
    oci::{Descriptor, INDEX, Index, MANIFEST, Manifest},
};

/// What is understood here, of OCI and of Docker.
const KNOWN: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                     application/vnd.docker.distribution.manifest.v2+json, \
                     application/vnd.docker.distribution.manifest.list.v2+json";
/// How often something is fetched whose transfer broke off.
const TRIES: u32 = 3;
/// How deep lists may be in lists.
const MAX_DEPTH: usize = 4;

pub(super) async fn pull(
    session: &Session<'_>,
    name: &Reference,
    store: &Store,
    told: &mut impl FnMut(Event),
) -> Result<Loaded, RegistryError> {
    let workspace = store.workspace()?;
    let layout = workspace.path();
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(Error::io("make", &blobs))?;
    let place = name.digest().or(name.tag()).unwrap_or_default();
    let (first, mut bytes) = document(session, place).await?;
    let mut descriptor = first.clone();
    for _ in 0..MAX_DEPTH {
        write(&blobs, &descriptor, &bytes)?;
        if !descriptor.is_index() {
            break;
        }
        let build = best(parse::<Index>(session, &bytes)?.manifests)?;
        (descriptor, bytes) = document(session, &build.digest.to_string()).await?;
    }
    let manifest: Manifest = parse(session, &bytes)?;
    let all = || manifest.layers.iter().chain([&manifest.config]);
    let size = all().fold(0_u64, |size, blob| size.saturating_add(blob.size));
    if size > store.limits().bytes {
        return Err(session.wrong(format!("it says that the image has {size} bytes, more than the limit")));
    }
    for blob in all() {
        fetch(session, blob, &blobs.join(blob.digest.hex()), told).await?;
    }
    write_index(&layout, &first, std::slice::from_ref(name))?;
    let mut loaded = store.load(Source::Path(&layout), None)?;
    loaded.pop().ok_or_else(|| session.wrong("it holds no image"))
}

fn parse<T: serde::de::DeserializeOwned>(session: &Session<'_>, bytes: &[u8]) -> Result<T, RegistryError> {
    serde_json::from_slice(bytes)
        .map_err(|error| session.wrong(format!("its manifest cannot be read: {error}")))
}

fn write(blobs: &Path, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), Error> {
    let path = blobs.join(descriptor.digest.hex());
    fs::write(&path, bytes).map_err(Error::io("write", &path))
}

/// A manifest or a list of them, by tag or digest, checked.
async fn document(session: &Session<'_>, place: &str) -> Result<(Descriptor, Vec<u8>), RegistryError> {
    let mut tries = 1;
    loop {
        match document_once(session, place).await {
            Err(RegistryError::Unreachable { .. }) if tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

async fn document_once(session: &Session<'_>, place: &str) -> Result<(Descriptor, Vec<u8>), RegistryError> {
    let request = Request::new(Method::GET, session.uri(&format!("manifests/{place}"))?)
        .header(ACCEPT, HeaderValue::from_static(KNOWN));
    let answer = session.send("pulling from", request).await?;
    if answer.status() == StatusCode::NOT_FOUND {
        let message = super::error::message(&read(answer.into_body()).await.unwrap_or_default());
        let separator = if place.contains(':') { '@' } else { ':' };
        let what = format!("{}{separator}{place}", session.repository);
        return Err(RegistryError::NotFound { registry: session.registry.clone(), what, message });
    }
    let media_type =
        answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let bytes = read(answer.into_body()).await.map_err(|error| session.unreachable(error))?;
    let digest = Digest::of(&bytes);
    if place.contains(':') && place != digest.to_string() {
        return Err(session.wrong(format!("it was asked for {place} and sent {digest}")));
    }
    let media_type = media_type.unwrap_or_else(|| guess(&bytes).to_owned());
    Ok((Descriptor::new(&media_type, digest, bytes.len() as u64), bytes))
}

/// What a document is where the registry does not say it.
fn guess(bytes: &[u8]) -> &'static str {
    let is_list = serde_json::from_slice::<serde_json::Value>(bytes)
        .is_ok_and(|value| value.get("manifests").is_some());
    if is_list { INDEX } else { MANIFEST }
}

/// Fetches a blob into a file, checked.
async fn fetch(
    session: &Session<'_>,
    blob: &Descriptor,
    path: &Path,
    told: &mut impl FnMut(Event),
) -> Result<(), RegistryError> {
    told(Event::Begins(blob.digest, blob.size));
    let mut tries = 1;
    while let Err(error) = fetch_once(session, blob, path).await {
        let may_go_well = matches!(error, RegistryError::Unreachable { .. });
        if !may_go_well || tries == TRIES {
            return Err(error);
        }
        tries += 1;
    }
    told(Event::Done(blob.digest));
    Ok(())
}

async fn fetch_once(session: &Session<'_>, blob: &Descriptor, path: &Path) -> Result<(), RegistryError> {
    let request = Request::new(Method::GET, session.uri(&format!("blobs/{}", blob.digest))?);
    let answer = session.send("pulling a layer from", request).await?;
    if answer.status() == StatusCode::NOT_FOUND {
        let message = super::error::message(&read(answer.into_body()).await.unwrap_or_default());
        let what = format!("{}@{}", session.repository, blob.digest);
        return Err(RegistryError::NotFound { registry: session.registry.clone(), what, message });
    }
    let mut file = File::create(path).map_err(Error::io("write", path))?;
    let (mut hasher, mut size) = (Hasher::new(), 0_u64);
    let mut body = answer.into_body();
    while let Some(data) = next(&mut body).await.map_err(|error| session.unreachable(error))? {
        size = size.saturating_add(data.len() as u64);
        if size > blob.size {
            return Err(session.wrong(format!("{} has more than its {} bytes", blob.digest, blob.size)));
        }
        hasher.update(&data);
        file.write_all(&data).map_err(Error::io("write", path))?;
    }
    let found = hasher.finish();
    match found == blob.digest {
        true => Ok(()),
        false => Err(session.wrong(format!("it was asked for {} and sent {found}", blob.digest))),
    }
}
