//! What a write gives back.

use bytes::Bytes;
use http::StatusCode;
use kubewright_meta::ApiError;

/// What a write gives back.
#[derive(Debug)]
pub struct Written {
    /// 201 for what was created, else 200.
    pub code: StatusCode,
    /// What it came to.
    pub result: WriteResult,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// The result of a write, as JSON.
#[derive(Debug)]
pub enum WriteResult {
    /// An object of the kind or a list of such, in whatever shape the client wants; of a subresource, its view of the object.
    Object(Bytes),
    /// A Status, which stays one whatever shape is wanted.
    Status(Bytes),
}

impl WriteResult {
    /// Its bytes, whatever it is.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Object(bytes) | Self::Status(bytes) => bytes,
        }
    }
}

impl From<Bytes> for WriteResult {
    fn from(object: Bytes) -> Self {
        Self::Object(object)
    }
}

impl Written {
    /// The outcome of a write: warnings are told of one that failed, too.
    pub(super) fn new(
        code: StatusCode,
        outcome: Result<impl Into<WriteResult>, ApiError>,
        warnings: Vec<String>,
    ) -> Result<Self, ApiError> {
        match outcome {
            Ok(result) => Ok(Self { code, result: result.into(), warnings }),
            Err(error) => Err(error.with_warnings(warnings)),
        }
    }
}
