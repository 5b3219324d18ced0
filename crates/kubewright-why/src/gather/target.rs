//! What is to be explained.

/// An object that is to be explained, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A kind, or its plural, singular or short name, with `.group` where it is to be that of a group.
    pub kind: String,
    /// Where it is, if its kind is namespaced.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why words name no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no name.
    #[error("object {0:?} has no name: say KIND/NAME, such as deployment/web")]
    NoName(String),
    /// There is more than one object.
    #[error("objects {0:?} are too many: say one, as KIND/NAME or KIND NAME")]
    TooMany(String),
    /// A name cannot be one.
    #[error("name {0:?} is no name of an object: names have lower case letters, digits, `-`, `.` and `:`")]
    Name(String),
}

impl Target {
    /// Reads `KIND/NAME`, or `KIND NAME`.
    ///
    /// # Errors
    /// [`TargetError`], when these words name no object, or several.
    pub fn parse(words: &[String], namespace: &str) -> Result<Self, TargetError> {
        let (kind, name) = match words {
            [word] => word.split_once('/').ok_or_else(|| TargetError::NoName(word.clone()))?,
            [kind, name] if !kind.contains('/') => (kind.as_str(), name.as_str()),
            more => return Err(TargetError::TooMany(more.join(" "))),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(TargetError::NoName(words.join(" ")));
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
        let names = [name, namespace];
        match names.into_iter().find(|name| !name.chars().all(is_plain) || matches!(*name, "." | "..")) {
            Some(wrong) => Err(TargetError::Name(wrong.to_owned())),
            None => {
                Ok(Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Target, TargetError> {
        Target::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), "shop")
    }

    #[test]
    fn an_object_is_named_in_one_word_or_two() {
        let web = Target { kind: "deploy".to_owned(), namespace: "shop".to_owned(), name: "web".to_owned() };
        assert_eq!(parse(&["deploy/web"]), Ok(web.clone()));
        assert_eq!(parse(&["deploy", "web"]), Ok(web));
    }

    #[test]
    fn words_that_name_no_object_are_refused_with_what_to_say() {
        for (words, begins) in [
            (vec!["web"], "object \"web\" has no name"),
            (vec!["pod/"], "object \"pod/\" has no name"),
            (vec!["pod", "a", "b"], "objects \"pod a b\" are too many"),
            (vec!["pod/a", "b"], "objects \"pod/a b\" are too many"),
            (vec!["pod/a/b"], "name \"a/b\" is no name"),
            (vec!["pod/.."], "name \"..\" is no name"),
            (vec!["pod/a?b=c"], "name \"a?b=c\" is no name"),
        ] {
            let error = parse(&words).expect_err("refused").to_string();
            assert!(error.starts_with(begins), "{error}");
        }
    }
}
