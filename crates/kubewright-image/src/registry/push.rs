//! Pushes an image: first what it consists of, then its manifest (`spec.md`, Pushing).

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{CONTENT_RANGE, CONTENT_TYPE, RANGE},
};

use super::{Event, RegistryError, http::Request, session::Session};
use crate::{
    Digest, Error, Reference,
    oci::{MANIFEST, MAX_DOCUMENT, Manifest},
};

/// How much is sent in one request. Registries behind proxies have limits.
const CHUNK: u64 = 16 << 20;
/// How often a chunk is sent again after the registry lost some of it.
const RESUMES: u32 = 5;

/// How often an upload is begun.
const TRIES: u32 = 3;

const ANY: &str = "application/octet-stream";
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const MIN_CHUNK: HeaderName = HeaderName::from_static("oci-chunk-min-length");

pub(super) async fn push(
    session: &Session<'_>,
    layout: &Path,
    digest: Digest,
    name: &Reference,
    told: &mut impl FnMut(Event),
) -> Result<(), RegistryError> {
    let path = |digest: Digest| layout.join("blobs/sha256").join(digest.hex());
    let bytes = document(&path(digest), digest)?;
    let manifest: Manifest = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Damaged(format!("{}: {error}", path(digest).display())))?;
    for descriptor in manifest.layers.iter().chain([&manifest.config]) {
        let blob = Blob { digest: descriptor.digest, size: descriptor.size, path: path(descriptor.digest) };
        blob.push(session, told).await?;
    }
    let media_type = manifest.media_type.as_deref().unwrap_or(MANIFEST);
    let media_type = HeaderValue::from_str(media_type)
        .map_err(|_| Error::Damaged(format!("{media_type:?} is no media type")))?;
    let digest_text = digest.to_string();
    let place = name.tag().unwrap_or(&digest_text);
    let request = Request::new(Method::PUT, session.uri(&format!("manifests/{place}"))?)
        .body(ANY, bytes.into())
        .header(CONTENT_TYPE, media_type);
    let answer = session.send("pushing the manifest to", request).await?;
    if answer.status() == StatusCode::NOT_FOUND {
        return Err(session.refusal("pushing the manifest to", answer).await);
    }
    check(session, answer.headers(), digest)
}

/// Reads a document of the layout, checked.
fn document(path: &Path, digest: Digest) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    match Digest::of(&bytes) == digest {
        true => Ok(bytes),
        false => Err(Error::Damaged(format!("{} is not what it was", path.display()))),
    }
}

/// Checks that a registry says to have what it was given, where it says so.
fn check(session: &Session<'_>, headers: &HeaderMap, digest: Digest) -> Result<(), RegistryError> {
    match headers.get(CONTENT_DIGEST).map(|value| value.to_str().unwrap_or_default()) {
        Some(told) if told != digest.to_string() => {
            Err(session
                .wrong(format!("it was given {digest} and says it has {}", crate::error::one_line(told))))
        }
        _ => Ok(()),
    }
}

/// What is to be there before the manifest is.
struct Blob {
    digest: Digest,
    size: u64,
    path: PathBuf,
}

impl Blob {
    async fn push(&self, session: &Session<'_>, told: &mut impl FnMut(Event)) -> Result<(), RegistryError> {
        if self.is_there(session).await? {
            told(Event::Exists(self.digest));
            return Ok(());
        }
        let size = fs::metadata(&self.path).map_err(Error::io("read", &self.path))?.len();
        if size != self.size {
            let told = format!("{} has {size} bytes and should have {}", self.path.display(), self.size);
            return Err(Error::Damaged(told).into());
        }
        told(Event::Begins(self.digest, size));
        let mut tries = 1;
        while let Err(error) = self.upload(session).await {
            // The answer may have been lost, or the upload with a server behind the address.
            let is_lost = matches!(
                &error,
                RegistryError::Unreachable { .. }
                    | RegistryError::Refused { status: StatusCode::NOT_FOUND, .. }
            );
            if !is_lost || tries == TRIES {
                return Err(error);
            }
            if self.is_there(session).await? {
                break;
            }
            tries += 1;
        }
        told(Event::Done(self.digest));
        Ok(())
    }

    async fn is_there(&self, session: &Session<'_>) -> Result<bool, RegistryError> {
        let head = Request::new(Method::HEAD, session.uri(&format!("blobs/{}", self.digest))?);
        Ok(session.send("looking for a layer in", head).await?.status() != StatusCode::NOT_FOUND)
    }

    async fn upload(&self, session: &Session<'_>) -> Result<(), RegistryError> {
        const ACTION: &str = "pushing a layer to";
        let begun = Request::new(Method::POST, session.uri("blobs/uploads/")?);
        let from = begun.uri.clone();
        let answer = session.send(ACTION, begun).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Err(session.refusal(ACTION, answer).await);
        }
        let mut place = session.location(&from, answer.headers())?;
        let least = answer.headers().get(MIN_CHUNK).and_then(|value| value.to_str().ok()?.parse().ok());
        let chunk = CHUNK.max(least.unwrap_or(0)).min(1 << 30);
        let mut rest = Bytes::new();
        if self.size <= chunk {
            rest = self.read(0, self.size)?.into();
        } else {
            place = self.upload_chunks(session, place, chunk).await?;
        }
        let request = Request::new(Method::PUT, with_digest(session, &place, self.digest)?).body(ANY, rest);
        let answer = session.send(ACTION, request).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Err(session.refusal(ACTION, answer).await);
        }
        check(session, answer.headers(), self.digest)
    }

    /// Sends it in pieces, each from where the registry says that it is; says where it is to be finished.
    async fn upload_chunks(
        &self,
        session: &Session<'_>,
        mut place: Uri,
        chunk: u64,
    ) -> Result<Uri, RegistryError> {
        let (mut sent, mut resumes) = (0, 0);
        while sent < self.size {
            let bytes = self.read(sent, chunk.min(self.size - sent))?;
            let end = sent + bytes.len() as u64;
            let range = HeaderValue::from_str(&format!("{sent}-{}", end - 1))
                .map_err(|error| session.wrong(error.to_string()))?;
            let request = Request::new(Method::PATCH, place.clone())
                .body(ANY, bytes.into())
                .header(CONTENT_RANGE, range);
            let answer = match session.once(&request).await {
                Ok(answer) if answer.status().is_success() => answer,
                failed => {
                    resumes += 1;
                    if resumes > RESUMES {
                        return Err(match failed {
                            Ok(answer) => session.refusal("pushing a layer to", answer).await,
                            Err(error) => error,
                        });
                    }
                    // Some of it may be there: the registry knows how much.
                    let status = Request::new(Method::GET, place.clone());
                    let answer = session.send("asking for an upload to", status).await?;
                    if answer.status() == StatusCode::NOT_FOUND {
                        return Err(session.refusal("pushing a layer to", answer).await);
                    }
                    answer
                }
            };
            sent = received(answer.headers()).unwrap_or(end).min(self.size);
            if answer.headers().contains_key(http::header::LOCATION) {
                place = session.location(&place, answer.headers())?;
            }
        }
        Ok(place)
    }

    fn read(&self, from: u64, size: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(size).read_to_end(&mut bytes)
        });
        read.map_err(Error::io("read", &self.path))?;
        Ok(bytes)
    }
}

/// How much a registry has by now: `Range: 0-<last>`. Nothing is said as `0-0`, as is one byte; none is that small.
fn received(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(RANGE)?.to_str().ok()?;
    let (_, last) = range.trim_start_matches("bytes=").split_once('-')?;
    match last.trim().parse::<u64>().ok()? {
        0 => Some(0),
        last => last.checked_add(1),
    }
}

fn with_digest(session: &Session<'_>, place: &Uri, digest: Digest) -> Result<Uri, RegistryError> {
    let text = place.to_string();
    let separator = if text.contains('?') { '&' } else { '?' };
    let whole = format!("{text}{separator}digest={}", digest.to_string().replace(':', "%3A"));
    whole.parse().map_err(|_| session.wrong("it sends us to what is no address"))
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn how_much_is_there_is_one_more_than_the_last() {
        let of =
            |range: &'static str| received(&HeaderMap::from_iter([(RANGE, HeaderValue::from_static(range))]));
        assert_eq!(of("0-1023"), Some(1024));
        assert_eq!(of("bytes=0-1023"), Some(1024));
        assert_eq!(of("0-0"), Some(0));
        assert_eq!(of("0-18446744073709551615"), None);
        assert_eq!(of("nonsense"), None);
    }
}
