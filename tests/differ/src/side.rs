//! One of the two servers: requests go to it, answers come back as they are.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::task::JoinHandle;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server.
#[derive(Clone)]
pub(crate) struct Side {
    client: Client,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A stream of events that is read meanwhile.
pub(crate) struct Stream {
    pub(crate) status: u16,
    lines: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Side {
    /// The server of a kubeconfig.
    ///
    /// # Errors
    /// Where the file says no server.
    pub(crate) async fn of(kubeconfig: &Path) -> Result<Self> {
        let config =
            Kubeconfig::read_from(kubeconfig).with_context(|| format!("reading {}", kubeconfig.display()))?;
        let mut config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        // Each answer is looked at, those that ask to come again as well.
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config)? })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Where no answer comes.
    pub(crate) async fn send(&self, request: Request<Vec<u8>>) -> Result<Answer> {
        let what = format!("{} {}", request.method(), request.uri());
        let sent = self.client.send(request.map(Body::from));
        let whole = async {
            let (head, body) = sent.await?.into_parts();
            let body = body.collect().await?.to_bytes().to_vec();
            Ok::<_, anyhow::Error>(Answer { status: head.status.as_u16(), headers: head.headers, body })
        };
        match tokio::time::timeout(PATIENCE, whole).await {
            Ok(answer) => answer,
            Err(_) => bail!("{what}: no answer within {PATIENCE:?}"),
        }
    }

    /// Sends a request whose answer has no end, and reads on.
    ///
    /// # Errors
    /// Where no answer begins.
    pub(crate) async fn stream(&self, request: Request<Vec<u8>>) -> Result<Stream> {
        let Ok(begun) = tokio::time::timeout(PATIENCE, self.client.send(request.map(Body::from))).await
        else {
            bail!("no watch began within {PATIENCE:?}");
        };
        let (head, body) = begun?.into_parts();
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let written = lines.clone();
        let reader = tokio::spawn(async move {
            let mut data = body.into_data_stream();
            while let Some(Ok(chunk)) = data.next().await {
                if let Ok(mut lines) = written.lock() {
                    lines.extend_from_slice(&chunk);
                }
            }
        });
        Ok(Stream { status: head.status.as_u16(), lines, reader })
    }

    /// Sends a request whose answer is lines, and hands each on as it comes, until the answer ends.
    ///
    /// # Errors
    /// Where no answer begins, or it is a refusal.
    pub(crate) async fn lines(&self, request: Request<Vec<u8>>, mut each: impl FnMut(&[u8])) -> Result<()> {
        let (head, body) = self.client.send(request.map(Body::from)).await?.into_parts();
        if !head.status.is_success() {
            bail!("it answers {}", head.status);
        }
        let mut data = body.into_data_stream();
        let mut rest = Vec::new();
        while let Some(chunk) = data.next().await {
            rest.extend_from_slice(&chunk?);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                each(&line);
            }
        }
        Ok(())
    }

    /// Gets JSON.
    ///
    /// # Errors
    /// Where the answer is none.
    pub(crate) async fn json(&self, path: &str, accept: &str) -> Result<Value> {
        let answer = self.send(Request::get(path).header("Accept", accept).body(Vec::new())?).await?;
        serde_json::from_slice(&answer.body).with_context(|| format!("{path} answers {}", answer.status))
    }
}

impl Stream {
    /// How much has come so far.
    pub(crate) fn size(&self) -> usize {
        self.lines.lock().map_or(0, |lines| lines.len())
    }

    /// Whether it goes on.
    pub(crate) fn is_open(&self) -> bool {
        !self.reader.is_finished()
    }

    /// Ends it: what came.
    pub(crate) fn end(self) -> Vec<u8> {
        self.reader.abort();
        self.lines.lock().map(|lines| lines.clone()).unwrap_or_default()
    }
}
