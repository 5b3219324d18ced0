//! Who asks, as Docker's and Podman's `login` keep it.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt, fs,
    io::{self, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

/// What Docker keeps the credentials of docker.io under.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The name that says that the secret is a token (`docker-credential-helpers`).
const TOKEN_USER: &str = "<token>";

/// How one says who one is.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// By name and password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// By a token that others are given for.
    IdentityToken(String),
}

/// Shows no secret.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => {
                f.debug_struct("Password").field("user", user).finish_non_exhaustive()
            }
            Self::IdentityToken(_) => f.debug_struct("IdentityToken").finish_non_exhaustive(),
        }
    }
}

/// Where credentials are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    files: Vec<PathBuf>,
    /// Where the helpers are: that of the environment, if this is none.
    path: Option<OsString>,
}

/// Why credentials cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("cannot read the credentials in {}: {reason}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A helper does not help.
    #[error("docker-credential-{helper}, which {} names, gives no credentials for {registry}: {reason}", file.display())]
    Helper {
        /// Its name, without the beginning.
        helper: String,
        /// The file that names it.
        file: PathBuf,
        /// For which registry.
        registry: String,
        /// What it said.
        reason: String,
    },
}

/// Docker's `config.json`, and Podman's `auth.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    auths: BTreeMap<String, Auth>,
    #[serde(rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").finish_non_exhaustive()
    }
}

/// What a helper says.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

impl Credentials {
    /// None at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Those of the user: `$REGISTRY_AUTH_FILE`, `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`,
    /// `$XDG_RUNTIME_DIR/containers/auth.json`, `~/.config/containers/auth.json`; the first that knows a registry counts.
    #[must_use]
    pub fn of_user() -> Self {
        Self { files: files(|name| env::var_os(name)), path: None }
    }

    /// Those of these files; helpers are looked for in `path` only.
    #[cfg(test)]
    pub(super) fn of_files(files: Vec<PathBuf>, path: OsString) -> Self {
        Self { files, path: Some(path) }
    }

    /// What is known for a repository of a registry. `None` is for nothing: there is much that everybody may pull.
    ///
    /// # Errors
    /// When a file cannot be read, or a helper fails.
    pub fn find(&self, registry: &str, repository: &str) -> Result<Option<Credential>, CredentialsError> {
        for file in &self.files {
            let wrong = |reason: String| CredentialsError::File { file: file.clone(), reason };
            let content = match fs::read(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.map_err(|error| wrong(error.to_string()))?,
            };
            let read: File = serde_json::from_slice(&content)
                // What serde_json says of a wrong value has the value in it.
                .map_err(|error| wrong(format!("line {}: it is not as it should be", error.line())))?;
            if let Some(helper) = best(&read.helpers, registry, repository) {
                return self.ask(helper, file, registry);
            }
            if let Some(auth) = best(&read.auths, registry, repository) {
                match auth.credential() {
                    Ok(Some(credential)) => return Ok(Some(credential)),
                    Ok(None) => {}
                    Err(reason) => return Err(wrong(format!("auths of {registry}: {reason}"))),
                }
            }
            if let Some(helper) = &read.store
                && let Some(credential) = self.ask(helper, file, registry)?
            {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }

    /// Asks a helper (`github.com/docker/docker-credential-helpers`).
    fn ask(
        &self,
        helper: &str,
        file: &std::path::Path,
        registry: &str,
    ) -> Result<Option<Credential>, CredentialsError> {
        let failed = |reason: String| CredentialsError::Helper {
            helper: crate::error::one_line(helper),
            file: file.to_owned(),
            registry: registry.to_owned(),
            reason: crate::error::one_line(&reason),
        };
        if helper.is_empty()
            || !helper.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        {
            return Err(failed("that is no name of a program".to_owned()));
        }
        let mut command = Command::new(format!("docker-credential-{helper}"));
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let key = if registry == "docker.io" { DOCKER_HUB } else { registry };
        let asked = command.spawn().and_then(|mut child| {
            // A helper may know the answer without reading the question.
            let _ = child.stdin.take().map(|mut stdin| stdin.write_all(key.as_bytes()));
            child.wait_with_output()
        });
        let output = asked.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            return if said.contains("credentials not found") { Ok(None) } else { Err(failed(said)) };
        }
        let Ok(Answer { username, secret }) = serde_json::from_slice(&output.stdout) else {
            return Err(failed("its answer cannot be read".to_owned()));
        };
        Ok(match &*username {
            _ if secret.is_empty() => None,
            TOKEN_USER => Some(Credential::IdentityToken(secret)),
            _ => Some(Credential::Password { user: username, password: secret }),
        })
    }
}

impl Auth {
    fn credential(&self) -> Result<Option<Credential>, &'static str> {
        if !self.identitytoken.is_empty() {
            return Ok(Some(Credential::IdentityToken(self.identitytoken.clone())));
        }
        if self.auth.is_empty() {
            let (user, password) = (self.username.clone(), self.password.clone());
            return Ok((!user.is_empty()).then_some(Credential::Password { user, password }));
        }
        let decoded = STANDARD.decode(self.auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let decoded = decoded.ok_or("its auth is not base64 of text")?;
        let (user, password) = decoded.split_once(':').ok_or("its auth is not name:password")?;
        let password = password.trim_end_matches('\0').to_owned();
        Ok(Some(Credential::Password { user: user.to_owned(), password }))
    }
}

/// What is kept for a repository: under the longest beginning of its name, at least under its registry.
fn best<'a, T>(kept: &'a BTreeMap<String, T>, registry: &str, repository: &str) -> Option<&'a T> {
    let wanted = format!("{registry}/{repository}/");
    let fits = kept.iter().filter_map(|(key, value)| {
        let key = normalized(key);
        wanted.starts_with(&format!("{key}/")).then_some((key.len(), value))
    });
    fits.max_by_key(|(length, _)| *length).map(|(_, value)| value)
}

/// The registry, or the beginning of a repository's name, that a key means; old ones are addresses.
fn normalized(key: &str) -> String {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    match key {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        key => key.to_owned(),
    }
}

/// The files that an environment names.
fn files(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = |rest: &str| folder("HOME").map(|home| home.join(rest));
    let docker = folder("DOCKER_CONFIG").or_else(|| home(".docker")).map(|folder| folder.join("config.json"));
    let runtime = folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json"));
    let config = folder("XDG_CONFIG_HOME").or_else(|| home(".config"));
    let config = config.map(|folder| folder.join("containers/auth.json"));
    [folder("REGISTRY_AUTH_FILE"), docker, runtime, config].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing::Folder;

    fn password(user: &str, password: &str) -> Option<Credential> {
        Some(Credential::Password { user: user.to_owned(), password: password.to_owned() })
    }

    /// Finds what this file has for a repository.
    fn find(content: &str, registry: &str, repository: &str) -> Result<Option<Credential>, String> {
        let folder = Folder::new("credentials");
        let file = folder.path().join("config.json");
        fs::write(&file, content).expect("written");
        for (name, script) in [
            (
                "sesame",
                r#"read key; echo "{\"ServerURL\":\"$key\",\"Username\":\"u\",\"Secret\":\"of $key\"}""#,
            ),
            ("token", r#"echo '{"Username":"<token>","Secret":"t"}'"#),
            ("empty", "echo credentials not found in native keychain; exit 1"),
            ("broken", "echo no keychain today; exit 1"),
        ] {
            let path = folder.path().join(format!("docker-credential-{name}"));
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        }
        let missing = folder.path().join("missing.json");
        let credentials = Credentials::of_files(vec![missing, file], folder.path().into());
        credentials.find(registry, repository).map_err(|error| error.to_string())
    }

    #[test]
    fn the_longest_beginning_of_a_name_counts() {
        let auth = |text: &str| format!(r#"{{"auth":"{}"}}"#, STANDARD.encode(text));
        let content = format!(
            r#"{{"auths":{{"https://index.docker.io/v1/":{},"quay.io":{},"quay.io/team":{},"localhost:5000":{}}}}}"#,
            auth("hub:h:1"),
            auth("all:a"),
            auth("team:t"),
            auth("local:l"),
        );
        assert_eq!(find(&content, "docker.io", "library/x"), Ok(password("hub", "h:1")));
        assert_eq!(find(&content, "quay.io", "other/x"), Ok(password("all", "a")));
        assert_eq!(find(&content, "quay.io", "team/x"), Ok(password("team", "t")));
        assert_eq!(find(&content, "quay.io", "teams/x"), Ok(password("all", "a")));
        assert_eq!(find(&content, "localhost:5000", "x"), Ok(password("local", "l")));
        assert_eq!(find(&content, "localhost:5001", "x"), Ok(None));
        assert_eq!(find(&content, "quay.io.evil.example", "x"), Ok(None));
    }

    #[test]
    fn helpers_are_asked() {
        let content = r#"{"credHelpers":{"a.example":"sesame","b.example":"token","c.example":"empty"},
            "credsStore":"sesame","auths":{"d.example":{}}}"#;
        assert_eq!(find(content, "a.example", "x"), Ok(password("u", "of a.example")));
        assert_eq!(find(content, "b.example", "x"), Ok(Some(Credential::IdentityToken("t".to_owned()))));
        assert_eq!(find(content, "c.example", "x"), Ok(None));
        assert_eq!(find(content, "d.example", "x"), Ok(password("u", "of d.example")));
        assert_eq!(find(content, "docker.io", "x"), Ok(password("u", "of https://index.docker.io/v1/")));
    }

    #[test]
    fn a_helper_that_fails_is_named_and_one_that_is_a_path_is_not_started() {
        let failed = find(r#"{"credsStore":"broken"}"#, "a.example", "x").expect_err("broken");
        assert!(
            failed.contains("docker-credential-broken") && failed.contains("no keychain today"),
            "{failed}"
        );
        let refused = find(r#"{"credsStore":"/../../bin/sh"}"#, "a.example", "x").expect_err("a path");
        assert!(refused.contains("no name of a program"), "{refused}");
        assert!(find(r#"{"credsStore":"nowhere"}"#, "a.example", "x").is_err());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_without_what_is_in_it() {
        for content in [
            r#"{"auths":{"a.example":{"auth":"c2VjcmV0"}}}"#,
            r#"{"auths":{"a.example":{"auth":"secret!"}}}"#,
            r#"{"auths":{"a.example":"secret"}}"#,
            "secret",
        ] {
            let error = find(content, "a.example", "x").expect_err(content);
            assert!(error.contains("config.json") && !error.contains("secret"), "{error}");
        }
        let shown =
            format!("{:?} {:?}", password("name", "secret"), Credential::IdentityToken("secret".to_owned()));
        assert!(shown.contains("name") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn the_places_are_those_of_docker_and_podman() {
        let environment = |set: &'static [(&str, &str)]| {
            let found =
                files(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()));
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(environment(&[]), Vec::<String>::new());
        assert_eq!(
            environment(&[("HOME", "/h")]),
            ["/h/.docker/config.json", "/h/.config/containers/auth.json"]
        );
        assert_eq!(
            environment(&[
                ("HOME", "/h"),
                ("REGISTRY_AUTH_FILE", "/auth"),
                ("DOCKER_CONFIG", "/docker"),
                ("XDG_RUNTIME_DIR", "/run")
            ]),
            ["/auth", "/docker/config.json", "/run/containers/auth.json", "/h/.config/containers/auth.json"]
        );
    }
}
