//! `kubewright build`: an operator's program, linked with all it needs, in an image of its own.

mod check;
mod compile;
mod last;
mod target;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use kubewright_image::{Made, Recipe, Reference, Source, Store, export};
use kubewright_layout::About;

use self::last::Kept;
pub(crate) use self::last::Last;
use self::target::{Compiler, Platform};
use crate::{
    image::{self, RegistryArgs, size},
    output::print,
    project::{Needed, Project, Selection},
};

/// What `kubewright build` takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) selection: Selection,

    /// What the image is called, such as `registry.example/team/operator:v1`; by default like the program, with the version
    /// of its package
    #[arg(long, short, value_name = "REF", value_parser = crate::args::tagged_reference)]
    pub(crate) tag: Option<Reference>,

    /// The profile that cargo builds with
    #[arg(long, value_name = "NAME", default_value = "release")]
    pub(crate) profile: String,

    /// Do not run the project's tests first
    #[arg(long)]
    pub(crate) skip_tests: bool,

    /// What the image runs on, such as `linux/arm64`; by default a machine like this one
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,

    /// Put this file of certificates (PEM) into the image, for operators that call others than their API server over HTTPS
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_certificates: Option<PathBuf>,

    /// Write the image to this file, for `docker load`, `podman load` and `kubewright image load`
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Load the image into the images of this machine, for `kubewright up --runtime process`
    #[arg(long)]
    pub(crate) load: bool,

    /// Where the images of this machine are; $KUBEWRIGHT_IMAGES says it too [default: ~/.local/share/kubewright/images]
    #[arg(long, value_name = "DIR", requires = "load")]
    pub(crate) image_store: Option<PathBuf>,

    /// Push the image to the registry that its name begins with
    #[arg(long, requires = "tag")]
    pub(crate) push: bool,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    /// More for `cargo build`, such as `-- --locked --features x`
    #[arg(last = true, value_name = "CARGO FLAGS")]
    pub(crate) cargo: Vec<OsString>,
}

impl BuildArgs {
    /// To build with a profile, and to load the image into the images of this machine.
    pub(crate) fn loading(selection: Selection, profile: &str, skip_tests: bool) -> Self {
        Self {
            selection,
            tag: None,
            profile: profile.to_owned(),
            skip_tests,
            platform: None,
            ca_certificates: None,
            output: None,
            load: true,
            image_store: None,
            push: false,
            registry: RegistryArgs::default(),
            cargo: Vec::new(),
        }
    }
}

/// Runs the tests, builds, and does with the image what was asked for.
///
/// # Errors
/// When there is no project, a test or cargo fails, the program is not static, or the image cannot be put where it should be.
pub(crate) async fn run(args: &BuildArgs) -> anyhow::Result<()> {
    let project = Project::select(&args.selection, Needed::Program)?;
    let name = match &args.tag {
        Some(tag) => tag.clone(),
        None => default_name(&project)?,
    };
    let (triple, platform) = Compiler::here(&project.workspace)?.target(args.platform)?;
    match args.skip_tests {
        true => print("Tests    left out (--skip-tests)\n")?,
        false => {
            compile::test(&project, args)?;
            print("Tests    passed\n")?;
        }
    }
    let program = compile::compile(&project, triple, args)?;
    check::is_static(&program, triple, platform)?;
    let kept = Kept::lock(&project.state())?;
    let made = make(&project, &program, args, &kept.layouts(), &name)?;
    let last = Last::of(&name, &made, &program)?;
    kept.remember(&last)?;
    kept.sweep(&last)?;
    print(&describe(&name, &made, platform))?;
    if let Some(path) = &args.output {
        export(&made.layout, path).context("cannot write the archive")?;
        print(&format!("Wrote    {}\n", path.display()))?;
    }
    if args.load {
        let store = image::store(args.image_store.as_deref())?;
        load(&store, &made.layout)?;
    }
    if args.push {
        image::push_layout(args.registry, &made.layout, made.digest, &name).await?;
    }
    Ok(())
}

/// The name of the program, with the version of its package.
fn default_name(project: &Project) -> anyhow::Result<Reference> {
    // Build metadata has a `+`, which tags do not have.
    let tag = project.version.replace('+', "_");
    let text = format!("{}:{tag}", project.bin.to_lowercase());
    Reference::parse(&text)
        .with_context(|| format!("{text:?} can be no name of an image: name another with --tag"))
}

fn make(
    project: &Project,
    program: &Path,
    args: &BuildArgs,
    layouts: &Path,
    name: &Reference,
) -> anyhow::Result<Made> {
    let recipe = Recipe {
        program,
        name: &project.bin,
        labels: labels(&project.package, &project.version, &project.about),
        authorities: args.ca_certificates.as_deref(),
        time: time(env::var("SOURCE_DATE_EPOCH").ok().as_deref())?,
    };
    recipe.make(layouts, std::slice::from_ref(name)).context("cannot make the image")
}

/// The time of all that is in the image: none, unless the environment says one (reproducible-builds.org).
fn time(epoch: Option<&str>) -> anyhow::Result<u32> {
    let Some(text) = epoch.filter(|text| !text.is_empty()) else { return Ok(0) };
    text.parse()
        .with_context(|| format!("SOURCE_DATE_EPOCH is {text:?}; it is to be a number of seconds since 1970"))
}

/// What the package says of itself (OCI's `annotations.md`).
fn labels(name: &str, version: &str, about: &About) -> BTreeMap<String, String> {
    let authors = about.authors.join(", ");
    let all = [
        ("title", Some(name)),
        ("version", Some(version)),
        ("description", about.description.as_deref()),
        ("licenses", about.license.as_deref()),
        ("source", about.repository.as_deref()),
        ("url", about.homepage.as_deref()),
        ("authors", Some(&*authors)),
    ];
    let known =
        all.into_iter().filter_map(|(key, value)| Some((key, value.filter(|value| !value.is_empty())?)));
    known.map(|(key, value)| (format!("org.opencontainers.image.{key}"), value.to_owned())).collect()
}

fn describe(name: &Reference, made: &Made, platform: Platform) -> String {
    let Made { digest, id, size: bytes, .. } = made;
    format!(
        "Image    {}\nDigest   {digest}\nImage ID {id}\nSize     {} ({platform}, static)\n",
        name.familiar(),
        size(*bytes)
    )
}

fn load(store: &Store, layout: &Path) -> anyhow::Result<()> {
    for loaded in store.load(Source::Path(layout), None).context("cannot load the image")? {
        for name in loaded.names {
            print(&format!("Loaded   {name}\n"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_image_is_none_unless_the_environment_says_one() {
        assert_eq!(time(None).expect("none"), 0);
        assert_eq!(time(Some("")).expect("none"), 0);
        assert_eq!(time(Some("1700000000")).expect("one"), 1_700_000_000);
        for bad in ["yesterday", "-1", "1.5"] {
            assert!(time(Some(bad)).expect_err("none").to_string().contains("SOURCE_DATE_EPOCH"));
        }
    }

    #[test]
    fn labels_are_what_the_package_says_and_nothing_empty() {
        let about =
            About { license: Some("MIT".to_owned()), description: Some(String::new()), ..About::default() };
        let labels: Vec<(String, String)> = labels("app", "1.2.3", &about).into_iter().collect();
        let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(
            labels,
            [
                ("org.opencontainers.image.licenses", "MIT"),
                ("org.opencontainers.image.title", "app"),
                ("org.opencontainers.image.version", "1.2.3"),
            ]
        );
    }
}
