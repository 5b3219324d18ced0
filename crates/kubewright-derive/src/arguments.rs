//! What stands in the brackets of the attribute.

use std::collections::BTreeSet;

use syn::{
    Error, Ident, LitBool, LitInt, LitStr, Result, Token, bracketed, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

use crate::{faults, kubernetes};

/// Under which seeds the body runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seeds {
    /// This one.
    One(u64),
    /// From 0 on, so many.
    First(u64),
}

/// What goes wrong under a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    All,
    Only(Vec<String>),
}

/// Which version of Kubernetes is served, by its name in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kubernetes {
    /// That of every cluster of which nothing else is said.
    Default,
    /// This one.
    One(&'static str),
    /// A test for each.
    Each(Vec<&'static str>),
}

/// The arguments, with their defaults.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) controllers: String,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) nodes: usize,
    pub(crate) namespaces: Vec<String>,
    pub(crate) seeds: Seeds,
    pub(crate) faults: Faults,
    pub(crate) real: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            controllers: "*".to_owned(),
            kubernetes: Kubernetes::Default,
            nodes: 1,
            namespaces: Vec::new(),
            seeds: Seeds::One(0),
            faults: Faults::None,
            real: false,
        }
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        let mut given = BTreeSet::new();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            let text = name.to_string();
            if !given.insert(text.clone()) {
                return Err(Error::new(name.span(), format!("`{text}` is given twice")));
            }
            arguments.take(&name, &text, input)?;
            if given.contains("seed") && given.contains("seeds") {
                let both =
                    "`seed = 7` runs the test under that seed, `seeds = 200` under 200 of them: choose one";
                return Err(Error::new(name.span(), both));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if arguments.real && arguments.faults != Faults::None {
            let both = "faults are injected into a simulated cluster only: write a test without `faults` to be run with `real = true`";
            return Err(Error::new(input.span(), both));
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn take(&mut self, name: &Ident, text: &str, input: ParseStream<'_>) -> Result<()> {
        match text {
            "controllers" => {
                self.controllers = value::<LitStr>(name, input, r#"controllers = "*,-deployment""#)?.value();
            }
            "kubernetes" => self.kubernetes = kubernetes(name, input)?,
            "nodes" => self.nodes = value::<LitInt>(name, input, "nodes = 3")?.base10_parse()?,
            "seed" => self.seeds = Seeds::One(value::<LitInt>(name, input, "seed = 7")?.base10_parse()?),
            "seeds" => {
                let number = value::<LitInt>(name, input, "seeds = 200")?;
                self.seeds = match number.base10_parse()? {
                    0 => {
                        return Err(Error::new(
                            number.span(),
                            "under no seed nothing is tested: write 1 or more",
                        ));
                    }
                    number => Seeds::First(number),
                };
            }
            "real" => self.real = value::<LitBool>(name, input, "real = true")?.value(),
            "namespaces" => self.namespaces = namespaces(name, input)?,
            "faults" => self.faults = faults(input)?,
            other => {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "there is no argument `{other}`; there are `controllers`, `nodes`, `namespaces`, `kubernetes`, \
                         `seed`, `seeds`, `faults` and `real`"
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn value<L: Parse>(name: &Ident, input: ParseStream<'_>, example: &str) -> Result<L> {
    let parsed = input.parse::<Token![=]>().and_then(|_| input.parse());
    parsed.map_err(|error| Error::new(error.span(), format!("`{name}` is written so: `{example}`")))
}

fn kubernetes(name: &Ident, input: ParseStream<'_>) -> Result<Kubernetes> {
    let parse = || {
        input.parse::<Token![=]>()?;
        if !input.peek(syn::token::Bracket) {
            return input.parse().map(|one: LitStr| (one.span(), vec![one], false));
        }
        let list;
        let bracket = bracketed!(list in input);
        let literals = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
        Ok((bracket.span.join(), literals.into_iter().collect(), true))
    };
    let (span, literals, is_list) = parse().map_err(|error| {
        let example = r#"`kubernetes = "1.36"`, or `kubernetes = ["1.35", "1.37"]` for a test of each"#;
        Error::new(error.span(), format!("`{name}` is written so: {example}"))
    })?;
    let mut versions = Vec::new();
    for literal in literals {
        let text = literal.value();
        let Some(variant) = kubernetes::variant(&text) else {
            let known = kubernetes::names();
            let why = format!("Kubernetes version {text:?} is not supported; supported are {known}");
            return Err(Error::new(literal.span(), why));
        };
        if versions.contains(&variant) {
            return Err(Error::new(literal.span(), format!("version {text:?} is given twice")));
        }
        versions.push(variant);
    }
    match versions[..] {
        [] => Err(Error::new(span, "with no version nothing is tested: name one or more")),
        [one] if !is_list => Ok(Kubernetes::One(one)),
        _ => Ok(Kubernetes::Each(versions)),
    }
}

fn namespaces(name: &Ident, input: ParseStream<'_>) -> Result<Vec<String>> {
    let parse = || {
        input.parse::<Token![=]>()?;
        let list;
        bracketed!(list in input);
        Punctuated::<LitStr, Token![,]>::parse_terminated(&list)
    };
    let list = parse().map_err(|error| {
        Error::new(error.span(), format!(r#"`{name}` is written so: `namespaces = ["a", "b"]`"#))
    })?;
    let mut names = Vec::new();
    for literal in list {
        let name = literal.value();
        let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_label) {
            let why = format!(
                "{name:?} is no name of a namespace: lower case letters, digits and dashes, at most 63"
            );
            return Err(Error::new(literal.span(), why));
        }
        names.push(name);
    }
    Ok(names)
}

fn faults(input: ParseStream<'_>) -> Result<Faults> {
    if !input.peek(syn::token::Paren) {
        if input.peek(Token![=]) {
            return Err(input.error("`faults` is written so: `faults`, or `faults(conflict, crash)`"));
        }
        return Ok(Faults::All);
    }
    let list;
    parenthesized!(list in input);
    let mut chosen = Vec::new();
    for name in Punctuated::<Ident, Token![,]>::parse_terminated(&list)? {
        let text = name.to_string();
        if !faults::NAMES.contains(&text.as_str()) {
            let why = format!("there is no fault `{text}`; there are {}", faults::NAMES.join(", "));
            return Err(Error::new(name.span(), why));
        }
        chosen.push(text);
    }
    match chosen.is_empty() {
        true => Err(list.error("`faults()` chooses none: write `faults` for all, or leave it out")),
        false => Ok(Faults::Only(chosen)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        syn::parse_str::<Arguments>(text).expect_err(text).to_string()
    }

    #[test]
    fn what_is_given_is_taken_and_the_rest_has_its_default() {
        let given: Arguments = syn::parse_str(
            r#"nodes = 3, controllers = "*,-deployment", namespaces = ["a", "b"], seeds = 200, faults(conflict, crash),"#,
        )
        .expect("it is right");
        assert_eq!((given.nodes, given.controllers.as_str(), given.real), (3, "*,-deployment", false));
        assert_eq!(given.namespaces, ["a", "b"]);
        assert_eq!(given.seeds, Seeds::First(200));
        assert_eq!(given.faults, Faults::Only(vec!["conflict".to_owned(), "crash".to_owned()]));
        let none: Arguments = syn::parse_str("").expect("it is right");
        assert_eq!((none.nodes, none.controllers.as_str(), none.seeds), (1, "*", Seeds::One(0)));
        let some: Arguments = syn::parse_str("faults, seed = 7").expect("it is right");
        assert_eq!((some.faults, some.seeds), (Faults::All, Seeds::One(7)));
        assert!(syn::parse_str::<Arguments>("real = true").expect("it is right").real);
        let of = |text: &str| syn::parse_str::<Arguments>(text).expect(text).kubernetes;
        assert_eq!(of(""), Kubernetes::Default);
        assert_eq!(of(r#"kubernetes = "v1.35", faults"#), Kubernetes::One("V1_35"));
        assert_eq!(of(r#"kubernetes = ["1.35", "1.37"]"#), Kubernetes::Each(vec!["V1_35", "V1_37"]));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (text, told) in [
            ("node = 3", "there is no argument `node`; there are `controllers`, `nodes`, "),
            ("nodes = \"3\"", "`nodes` is written so: `nodes = 3`"),
            ("nodes", "`nodes` is written so: `nodes = 3`"),
            ("controllers = [\"a\"]", r#"`controllers` is written so: `controllers = "*,-deployment"`"#),
            ("namespaces = \"a\"", r#"`namespaces` is written so: `namespaces = ["a", "b"]`"#),
            ("namespaces = [\"A b\"]", "\"A b\" is no name of a namespace"),
            ("seeds = 0", "under no seed nothing is tested"),
            ("seed = 7, seeds = 3", "choose one"),
            ("nodes = 1, nodes = 2", "`nodes` is given twice"),
            ("faults(rain)", "there is no fault `rain`; there are clock_skew, conflict, "),
            ("faults()", "`faults()` chooses none"),
            ("kubernetes = \"1.34\"", "version \"1.34\" is not supported; supported are 1.35, 1.36, 1.37"),
            (
                "kubernetes = [\"1.35\", \"1.36.3\"]",
                "version \"1.36.3\" is not supported; supported are 1.35",
            ),
            ("kubernetes = [\"1.35\", \"v1.35\"]", "version \"v1.35\" is given twice"),
            ("kubernetes = []", "with no version nothing is tested"),
            ("kubernetes = 1.36", "`kubernetes` is written so: `kubernetes = \"1.36\"`, or "),
            ("faults = true", "`faults` is written so: `faults`, or "),
            ("faults, real = true", "faults are injected into a simulated cluster only"),
        ] {
            let why = refused(text);
            assert!(why.contains(told), "{text}: {why}");
        }
    }
}
