//! Which file a command means, as Go's `exec.LookPath` finds it for runc.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::{Failure, Reason};

/// What runc takes where there is no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file to run, for a process that already is the container's user in its root and working directory.
pub(super) fn program(name: &str, path: Option<&str>) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        let file = PathBuf::from(name);
        return match executable(&file) {
            Ok(()) => Ok(file),
            Err(reason) => Err(Failure(format!("exec: {name:?}: {reason}"))),
        };
    }
    let folders = path.unwrap_or(DEFAULT_PATH).split(':');
    let found = folders.map(|folder| Path::new(if folder.is_empty() { "." } else { folder }).join(name));
    found
        .into_iter()
        .find(|file| !name.is_empty() && executable(file).is_ok())
        .ok_or_else(|| Failure(format!("exec: {name:?}: executable file not found in $PATH")))
}

fn executable(file: &Path) -> Result<(), String> {
    let found = file.metadata().map_err(|error| format!("stat {}: {}", file.display(), Reason(error)))?;
    if found.is_dir() {
        return Err("is a directory".to_owned());
    }
    accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|error| Reason(io::Error::from(error)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(name: &str, path: Option<&str>) -> String {
        program(name, path).unwrap_err().0
    }

    #[test]
    fn a_name_is_looked_for_in_the_path_and_a_path_is_taken_as_it_is() {
        assert_eq!(program("sh", Some("/nowhere:/bin")).unwrap(), Path::new("/bin/sh"));
        assert_eq!(program("sh", None).unwrap().file_name().unwrap(), "sh");
        assert_eq!(program("/bin/sh", Some("")).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn what_is_missing_is_told_in_the_words_of_runc() {
        assert_eq!(reason("nope", Some("/bin")), r#"exec: "nope": executable file not found in $PATH"#);
        assert_eq!(reason("", Some("/bin")), r#"exec: "": executable file not found in $PATH"#);
        assert_eq!(reason("/nope", None), r#"exec: "/nope": stat /nope: no such file or directory"#);
        assert_eq!(reason("/etc/passwd", None), r#"exec: "/etc/passwd": permission denied"#);
        assert_eq!(reason("/etc", None), r#"exec: "/etc": is a directory"#);
    }
}
