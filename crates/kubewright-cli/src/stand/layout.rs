//! Layout: which framework a project is made with, and where its manifests, its samples and its program are by the habits of that
//! framework. Reads file names and a few texts; builds and runs nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::program::PORT;

/// A framework whose projects are known by their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    Kubebuilder,
    OperatorSdk,
    Kopf,
    Josdk,
    KubeRs,
    Kubewright,
}

/// How a program is had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// `go build` of a package, with the flags of a manager.
    Go(&'static str),
    /// A program that is there, with its arguments.
    Command(Vec<String>),
    /// The program of a Cargo package, of Kubewright's SDK.
    Cargo,
    /// The program of a Cargo package that says nothing of itself.
    Crate,
}

/// Where a framework has what: of each group the first place that is there.
struct Habits {
    name: &'static str,
    manifests: &'static [&'static [&'static str]],
    samples: &'static [&'static str],
    /// What makes the manifests where there are none.
    made_by: &'static str,
}

/// Manifests of projects in Go.
const OF_GO: &[&[&str]] = &[&["config/default", "config", "deploy", "manifests", "dist/install.yaml"]];
/// What else a person calls a folder or file of samples.
const SAMPLES: &[&str] = &[
    "config/samples",
    "samples",
    "examples",
    "example",
    "deploy/samples",
    "deploy/examples",
    "k8s/samples",
    "k8s/examples",
    "sample.yaml",
    "example.yaml",
    "obj.yaml",
    "cr.yaml",
    "deploy/cr.yaml",
    "k8s/sample.yaml",
    "k8s/example.yaml",
    "src/test/resources/samples",
];
/// Where projects of cargo keep what they install.
const OF_CARGO: &[&[&str]] = &[&["config", "deploy", "manifests", "yaml", "k8s", "kubernetes"]];
/// Files of a Java project's build.
const JAVA: [&str; 3] = ["pom.xml", "build.gradle", "build.gradle.kts"];
/// Programs that a Java build makes: in which folder, and how their names end. Those with all that they need come first.
const JARS: [&str; 5] = ["-runner.jar", "-jar-with-dependencies.jar", "-shaded.jar", "-all.jar", ".jar"];
/// Jars that nobody starts.
const NO_PROGRAMS: [&str; 5] = ["-sources.jar", "-javadoc.jar", "-tests.jar", "-plain.jar", "original-"];
/// Folders in which Python files are looked for, beside the project's own.
const PYTHON: [&str; 5] = [".", "src", "operator", "handlers", "app"];

impl Framework {
    /// The framework of the project in a folder; none where no file tells. Of Cargo, the folders above count too.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let is_there = |name: &str| folder.join(name).is_file();
        let has_cargo = |folder: &Path| folder.join("Cargo.toml").is_file();
        let is_of_sdk = text("PROJECT").contains("sdk.operatorframework.io");
        if is_there("go.mod") || (is_of_sdk && !has_cargo(folder)) {
            return Some(if is_of_sdk { Self::OperatorSdk } else { Self::Kubebuilder });
        }
        if has_cargo(folder) {
            let package = text("Cargo.toml");
            let is_kube = |line: &str| {
                line.starts_with("kube ") || line.starts_with("kube.") || line == "[dependencies.kube]"
            };
            let is_of_kube_rs = !package.contains("kubewright") && package.lines().any(is_kube);
            return Some(if is_of_kube_rs { Self::KubeRs } else { Self::Kubewright });
        }
        if JAVA.iter().any(|name| is_there(name)) {
            return Some(Self::Josdk);
        }
        if !handlers(folder).is_empty() {
            return Some(Self::Kopf);
        }
        let whole = folder.canonicalize().ok()?;
        whole.ancestors().skip(1).any(has_cargo).then_some(Self::Kubewright)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.habits().name
    }

    fn habits(self) -> Habits {
        match self {
            Self::Kubebuilder => Habits {
                name: "Kubebuilder",
                manifests: OF_GO,
                samples: SAMPLES,
                made_by: "`make manifests` makes them",
            },
            Self::OperatorSdk => Habits {
                name: "Operator SDK",
                manifests: OF_GO,
                samples: SAMPLES,
                made_by: "`make manifests` makes them",
            },
            Self::Kopf => Habits {
                name: "kopf",
                manifests: &[
                    &["deploy", "manifests", "k8s", "kubernetes", "config", "crds", "crd.yaml"],
                    &["rbac.yaml"],
                    &["deployment.yaml"],
                ],
                samples: SAMPLES,
                made_by: "they are written by hand",
            },
            Self::Josdk => Habits {
                name: "JOSDK",
                manifests: &[
                    &[
                        "target/kubernetes",
                        "build/kubernetes",
                        "k8s",
                        "kubernetes",
                        "deploy",
                        "manifests",
                        "config",
                    ],
                    &["target/classes/META-INF/fabric8", "build/classes/java/main/META-INF/fabric8"],
                ],
                samples: SAMPLES,
                made_by: "the build makes them (mvn package, or gradle build)",
            },
            Self::KubeRs => Habits {
                name: "kube-rs",
                manifests: OF_CARGO,
                samples: SAMPLES,
                made_by: "many projects print those of their definitions with a program of their own",
            },
            Self::Kubewright => Habits {
                name: "Kubewright",
                manifests: &[],
                samples: SAMPLES,
                made_by: "the program says them",
            },
        }
    }

    /// Where the manifests are.
    ///
    /// # Errors
    /// When they are not where they are by habit; says where it was looked, and what makes them.
    pub(crate) fn manifests(self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let Habits { name, manifests, made_by, .. } = self.habits();
        let found: Vec<PathBuf> = manifests.iter().filter_map(|group| first(folder, group)).collect();
        if found.is_empty() {
            let places: Vec<&str> = manifests.iter().copied().flatten().copied().collect();
            return Err(format!(
                "manifests: this is a project of {name}, and there is none of {} here; {made_by}. Name what is to be read with \
                 --manifests",
                places.join(", ")
            ));
        }
        Ok(found)
    }

    /// How the program is started.
    ///
    /// # Errors
    /// When it is not there, or not known; says what to do.
    pub(crate) fn start(self, folder: &Path) -> Result<Start, String> {
        match self {
            Self::Kubebuilder | Self::OperatorSdk => go(folder),
            Self::Kopf => {
                let words = ["kopf", "run", "--all-namespaces"].map(str::to_owned).into_iter();
                let files = handlers(folder);
                if files.is_empty() {
                    return Err("program: no Python file here imports kopf: name it behind --".to_owned());
                }
                Ok(Start::Command(words.chain(files).collect()))
            }
            Self::Josdk => java(folder),
            Self::KubeRs => Ok(Start::Crate),
            Self::Kubewright => Ok(Start::Cargo),
        }
    }
}

/// Where the samples of a project are.
///
/// # Errors
/// When they are nowhere; says where it was looked.
pub(crate) fn samples(folder: &Path) -> Result<PathBuf, String> {
    let places = Framework::of(folder).map_or(SAMPLES, |framework| framework.habits().samples);
    first(folder, places).ok_or_else(|| format!("there is no {} here", places.join(", no ")))
}

/// What to say where no framework is found.
pub(crate) fn unknown() -> String {
    format!(
        "there is no project here: no go.mod (Kubebuilder, Operator SDK), no Cargo.toml (Kubewright, kube-rs), no {} (JOSDK), and no Python \
         file that imports kopf. Go to the folder of one, or name all: --manifests, --sample, and the program behind --",
        JAVA.join(", no ")
    )
}

fn first(folder: &Path, places: &[&str]) -> Option<PathBuf> {
    let place = places.iter().find(|place| folder.join(place).exists())?;
    Some(if folder == Path::new(".") { PathBuf::from(place) } else { folder.join(place) })
}

fn go(folder: &Path) -> Result<Start, String> {
    if !folder.join("go.mod").is_file() {
        return Err(
            "program: this project of Operator SDK has no go.mod; one of Ansible or Helm runs in an image of its own: name what starts \
             it behind --"
                .to_owned(),
        );
    }
    let package = ["./cmd", "."].into_iter().find(|package| folder.join(package).join("main.go").is_file());
    let missing = || "program: there is no cmd/main.go and no main.go here: name it behind --".to_owned();
    package.map(Start::Go).ok_or_else(missing)
}

/// The Python files with handlers of kopf, relative to the folder.
fn handlers(folder: &Path) -> Vec<String> {
    let is_handler = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let imports = |line: &str| line.starts_with("import kopf") || line.starts_with("from kopf");
        text.lines().any(imports) && text.contains("@kopf.")
    };
    let mut found = Vec::new();
    for place in PYTHON {
        let files = names(&folder.join(place));
        for name in files.iter().filter(|name| name.ends_with(".py") && !name.starts_with("test")) {
            if is_handler(&folder.join(place).join(name)) {
                found.push(if place == "." { name.clone() } else { format!("{place}/{name}") });
            }
        }
    }
    found
}

/// The program that a Java build has made: that of Quarkus, or a jar with all that it needs.
fn java(folder: &Path) -> Result<Start, String> {
    let words = |words: &[&str]| Start::Command(words.iter().map(|word| (*word).to_owned()).collect());
    let port = format!("-Dquarkus.http.port={PORT}");
    for build in ["target", "build"] {
        let jar = format!("{build}/quarkus-app/quarkus-run.jar");
        if folder.join(&jar).is_file() {
            return Ok(words(&["java", &port, "-jar", &jar]));
        }
    }
    for build in ["target", "build/libs"] {
        let mut jars = names(&folder.join(build));
        jars.retain(|name| !NO_PROGRAMS.iter().any(|other| name.ends_with(other) || name.starts_with(other)));
        for end in JARS {
            if let Some(jar) = jars.iter().find(|name| name.ends_with(end)) {
                return Ok(words(&["java", "-jar", &format!("{build}/{jar}")]));
            }
        }
    }
    Err("program: this project of JOSDK has no target/quarkus-app/quarkus-run.jar, and no jar in target or build/libs: build it first \
         (mvn -DskipTests package, or gradle build), or name what starts it behind --"
        .to_owned())
}

/// The names of the files in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let mut names: Vec<String> =
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A folder with these files, which goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn of(files: &[(&str, &str)]) -> Self {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("kubewright-layout-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).expect("a folder");
            for (file, text) in files {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(file, text).expect("a file");
            }
            Self(folder)
        }

        fn manifests(&self) -> Result<Vec<String>, String> {
            let framework = Framework::of(&self.0).expect("a framework");
            let below = |path: &PathBuf| path.strip_prefix(&self.0).expect("below").display().to_string();
            framework.manifests(&self.0).map(|found| found.iter().map(below).collect())
        }

        fn start(&self) -> Result<Start, String> {
            Framework::of(&self.0).expect("a framework").start(&self.0)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn command(words: &[&str]) -> Result<Start, String> {
        Ok(Start::Command(words.iter().map(|word| (*word).to_owned()).collect()))
    }

    #[test]
    fn a_project_of_kubebuilder_is_built_with_go_and_has_its_manifests_in_config() {
        let folder = Folder::of(&[
            ("go.mod", "module example.org/memcached"),
            ("PROJECT", "layout:\n- go.kubebuilder.io/v4\n"),
            ("cmd/main.go", "package main"),
            ("config/default/kustomization.yaml", ""),
            ("config/samples/cache_v1_memcached.yaml", ""),
        ]);
        assert_eq!(Framework::of(&folder.0), Some(Framework::Kubebuilder));
        assert_eq!(folder.manifests().as_deref(), Ok(&["config/default".to_owned()][..]));
        assert_eq!(folder.start(), Ok(Start::Go("./cmd")));
        assert_eq!(samples(&folder.0), Ok(folder.0.join("config/samples")));
    }

    #[test]
    fn a_project_of_operator_sdk_is_known_by_its_plugins() {
        let plugins =
            "layout:\n- go.kubebuilder.io/v4\nplugins:\n  manifests.sdk.operatorframework.io/v2: {}\n";
        let go = Folder::of(&[("go.mod", ""), ("PROJECT", plugins), ("main.go", "package main")]);
        assert_eq!(Framework::of(&go.0), Some(Framework::OperatorSdk));
        assert_eq!(go.start(), Ok(Start::Go(".")));
        let why = go.manifests().expect_err("there are none");
        assert!(why.contains("Operator SDK") && why.contains("make manifests"), "{why}");
        let ansible = Folder::of(&[("PROJECT", "layout:\n- ansible.sdk.operatorframework.io/v1\n")]);
        assert_eq!(Framework::of(&ansible.0), Some(Framework::OperatorSdk));
        assert!(ansible.start().expect_err("no program").contains("Ansible or Helm"));
    }

    #[test]
    fn a_project_of_kopf_is_run_with_the_files_that_have_handlers() {
        let handlers = "import kopf\n\n@kopf.on.create('pages')\ndef made(**_): pass\n";
        let folder = Folder::of(&[
            ("operator.py", handlers),
            ("src/more.py", &handlers.replace("import kopf", "from kopf import on\nimport kopf")),
            ("test_operator.py", handlers),
            ("setup.py", "import setuptools\n"),
            ("crd.yaml", ""),
            ("rbac.yaml", ""),
            ("obj.yaml", ""),
        ]);
        assert_eq!(Framework::of(&folder.0), Some(Framework::Kopf));
        assert_eq!(
            folder.start(),
            command(&["kopf", "run", "--all-namespaces", "operator.py", "src/more.py"])
        );
        assert_eq!(folder.manifests(), Ok(vec!["crd.yaml".to_owned(), "rbac.yaml".to_owned()]));
        assert_eq!(samples(&folder.0), Ok(folder.0.join("obj.yaml")));
    }

    #[test]
    fn a_project_of_josdk_is_run_from_what_its_build_has_made() {
        let quarkus = Folder::of(&[
            ("pom.xml", "<project/>"),
            ("target/kubernetes/kubernetes.yml", ""),
            ("target/quarkus-app/quarkus-run.jar", ""),
            ("target/app-1.jar", ""),
        ]);
        assert_eq!(Framework::of(&quarkus.0), Some(Framework::Josdk));
        let jar = "target/quarkus-app/quarkus-run.jar";
        assert_eq!(quarkus.start(), command(&["java", "-Dquarkus.http.port={port}", "-jar", jar]));
        let plain = Folder::of(&[
            ("build.gradle.kts", ""),
            ("k8s/operator.yaml", ""),
            ("build/classes/java/main/META-INF/fabric8/pages.example.org-v1.yml", ""),
            ("build/libs/app-1-sources.jar", ""),
            ("build/libs/app-1-all.jar", ""),
            ("build/libs/app-1.jar", ""),
        ]);
        assert_eq!(plain.start(), command(&["java", "-jar", "build/libs/app-1-all.jar"]));
        let fabric8 = "build/classes/java/main/META-INF/fabric8";
        assert_eq!(plain.manifests(), Ok(vec!["k8s".to_owned(), fabric8.to_owned()]));
        let unbuilt = Folder::of(&[("pom.xml", "<project/>")]);
        assert!(unbuilt.start().expect_err("no jar").contains("mvn -DskipTests package"));
        assert!(unbuilt.manifests().expect_err("none").contains("mvn package"));
    }

    #[test]
    fn a_project_of_kubewright_is_one_of_cargo_and_its_folders_are_too() {
        let folder = Folder::of(&[("Cargo.toml", ""), ("PROJECT", "layout: x"), ("src/main.rs", "")]);
        assert_eq!(Framework::of(&folder.0), Some(Framework::Kubewright));
        assert_eq!(Framework::of(&folder.0.join("src")), Some(Framework::Kubewright));
        assert_eq!(folder.start(), Ok(Start::Cargo));
    }

    #[test]
    fn a_project_of_kube_rs_is_one_of_cargo_without_our_sdk() {
        let of = |text: &str| Folder::of(&[("Cargo.toml", text), ("yaml/crd.yaml", "")]);
        let folder = of("[dependencies]\nkube = { version = \"3\" }\n");
        assert_eq!(Framework::of(&folder.0), Some(Framework::KubeRs));
        assert_eq!(folder.start(), Ok(Start::Crate));
        assert_eq!(folder.manifests(), Ok(vec!["yaml".to_owned()]));
        let both = of("[dependencies]\nkube.workspace = true\nkubewright.workspace = true\n");
        assert_eq!(Framework::of(&both.0), Some(Framework::Kubewright));
    }

    #[test]
    fn where_there_is_no_project_or_no_sample_it_is_said_what_is_missing() {
        let folder = Folder::of(&[("notes.txt", ""), ("script.py", "print()\n")]);
        assert_eq!(Framework::of(&folder.0), None);
        for wanted in ["go.mod", "Cargo.toml", "pom.xml", "kopf", "--manifests", "--sample"] {
            assert!(unknown().contains(wanted), "{wanted}");
        }
        let why = samples(&folder.0).expect_err("none");
        assert!(why.starts_with("there is no config/samples, no samples, "), "{why}");
    }
}
