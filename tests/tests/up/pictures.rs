//! Pictures of the page of `up --ui` and of `view`, compared with those in `tests/pictures`.
//!
//! They are compared by the colours of blocks of pixels, so that a line that has moved is seen and the edge of a letter is not. The
//! page shows a recording that is the same each time, in fonts that are the same on every machine.

use std::path::{Path, PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use kubewright_tests::{
    browser::{Browser, Scheme},
    needed,
};
use serde_json::{Value, json};

use crate::shop::Viewed;

/// Pixels of a side of a block.
const BLOCK: usize = 8;
/// By so much of 255 a block may differ in red, green or blue, and counts as the same.
const SAME: f64 = 10.0;
/// So many of a thousand blocks may differ.
const TOLERATED: usize = 1;
/// Of 100: a picture has some 40 KB.
const QUALITY: u8 = 60;
/// The most bytes of a picture, which is committed.
const LARGEST: usize = 60_000;

/// What is shown: its name, what the address says, what is waited for, and what is clicked then.
const SHOWN: [(&str, &str, &str, &str); 3] = [
    ("object", "object=apps%2Fdeployments%7Cshop%2Fbooks", "document.querySelector('.yaml')", "#zoom-fit"),
    (
        "timeline",
        "object=%2Fpods%7Cshop%2Fbooks-2-1&tab=history&at=24",
        "document.querySelector('.changes .diff')",
        "#axis",
    ),
    (
        "reconciles",
        "page=reconciles",
        "document.querySelectorAll('#reconciles tbody tr').length > 9",
        "#page-reconciles",
    ),
];

#[tokio::test]
#[ignore = "needs Chromium and fonts: cargo xtask test"]
async fn the_page_looks_as_in_its_pictures_in_light_and_dark() {
    let viewed = Viewed::shop("pictures");
    let mut browser = Browser::start("pictures-profile");
    let mut taken = Vec::new();
    for (name, address, is_there, clicked) in SHOWN {
        browser.open(&format!("{}&{address}", viewed.link()));
        browser.until("document.querySelector('#status').textContent === 'recording'").await;
        browser.until(is_there).await;
        browser.value(&in_fonts(&needed("FONTS")));
        browser.click(clicked);
        // With other colours the timeline is drawn anew, in these fonts.
        for scheme in [Scheme::Dark, Scheme::Light] {
            browser.show_in(scheme);
            browser.value(
                "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(0))))",
            );
            taken.push((format!("{name}-{}", scheme.name()), browser.picture(QUALITY)));
        }
    }
    assert_eq!(browser.errors, [""; 0]);
    browser.open("about:blank");
    let wrong: Vec<String> = taken
        .into_iter()
        .filter_map(|(name, picture)| compare(&mut browser, &name, &picture).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{}\nwhere that is meant: KUBEWRIGHT_GOLDEN=write with this test",
        wrong.join("\n")
    );
}

/// Takes a picture over, or compares it with the one that was; says how they differ, and leaves the new one beside.
fn compare(browser: &mut Browser, name: &str, picture: &[u8]) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("pictures");
    let (old, new) = (folder.join(format!("{name}.webp")), folder.join(format!("{name}.new.webp")));
    if std::env::var("KUBEWRIGHT_GOLDEN").is_ok_and(|wish| wish == "write") {
        assert!(picture.len() < LARGEST, "{name} has {} bytes", picture.len());
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(old, picture).expect("written");
        return Ok(());
    }
    let before = std::fs::read(&old).map_err(|error| format!("{}: {error}", old.display()))?;
    let (before, after) = (Blocks::of(browser, &before), Blocks::of(browser, picture));
    match before.differs(&after) {
        differs if differs * 1000 <= before.means.len() * TOLERATED => {
            let _ = std::fs::remove_file(new);
            Ok(())
        }
        differs => {
            std::fs::write(&new, picture).expect("written");
            let of = before.means.len();
            Err(format!(
                "{name}: {differs} of {of} blocks differ: see {} and {}",
                new.display(),
                old.display()
            ))
        }
    }
}

/// Shows the page in fonts of this folder. They are handed over, as the policy of the page lets it load none.
fn in_fonts(folder: &Path) -> String {
    let font = |file: &str| -> PathBuf { folder.join(file) };
    let faces = [
        ("Held", "400", font("DejaVuSans.ttf")),
        ("Held", "700", font("DejaVuSans-Bold.ttf")),
        ("Held Mono", "400", font("DejaVuSansMono.ttf")),
    ];
    let faces: Vec<Value> = faces
        .iter()
        .map(|(family, weight, file)| {
            let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            json!({"family": family, "weight": weight, "bytes": BASE64_STANDARD.encode(bytes)})
        })
        .collect();
    format!(
        "(async () => {{
            for (const {{ family, weight, bytes }} of {}) {{
                const face = new FontFace(family, Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0)), {{ weight }});
                document.fonts.add(await face.load());
            }}
            document.documentElement.style.setProperty('--sans', 'Held');
            document.documentElement.style.setProperty('--mono', 'Held Mono');
        }})()",
        json!(faces)
    )
}

/// A picture as the mean colours of its blocks, line by line.
#[derive(Debug)]
struct Blocks {
    width: usize,
    means: Vec<[f64; 3]>,
}

impl Blocks {
    /// The blocks of a picture, which the browser reads.
    fn of(browser: &mut Browser, picture: &[u8]) -> Self {
        let found = browser.value(&format!(
            "(async () => {{
                const bytes = Uint8Array.from(atob({}), (letter) => letter.charCodeAt(0));
                const image = await createImageBitmap(new Blob([bytes]));
                const [across, down] = [image.width, image.height].map((pixels) => Math.ceil(pixels / {BLOCK}));
                const pen = new OffscreenCanvas(image.width, image.height).getContext('2d');
                pen.drawImage(image, 0, 0);
                const means = [];
                for (let block = 0; block < across * down; block += 1) {{
                    const place = [(block % across) * {BLOCK}, Math.floor(block / across) * {BLOCK}];
                    const {{ data }} = pen.getImageData(...place, {BLOCK}, {BLOCK});
                    const mean = [0, 0, 0];
                    for (let at = 0; at < data.length; at += 1) if (at % 4 < 3) mean[at % 4] += data[at] * 4 / data.length;
                    means.push(mean);
                }}
                return [across, means];
            }})()",
            json!(BASE64_STANDARD.encode(picture))
        ));
        let number = |value: &Value| value.as_f64().expect("a number");
        let means = found[1].as_array().expect("blocks").iter();
        let means = means.map(|mean| [number(&mean[0]), number(&mean[1]), number(&mean[2])]).collect();
        Self { width: usize::try_from(found[0].as_u64().expect("a width")).expect("small"), means }
    }

    /// How many blocks are not the same; all where the pictures are not of one size.
    fn differs(&self, other: &Self) -> usize {
        if (self.width, self.means.len()) != (other.width, other.means.len()) {
            return self.means.len();
        }
        let is_same = |(one, other): &([f64; 3], [f64; 3])| {
            one.iter().zip(other).all(|(one, other)| (one - other).abs() <= SAME)
        };
        self.means.iter().copied().zip(other.means.iter().copied()).filter(|pair| !is_same(pair)).count()
    }
}

#[test]
fn a_block_differs_by_more_than_the_edge_of_a_letter() {
    let blocks =
        |means: &[f64]| Blocks { width: 2, means: means.iter().map(|mean| [255.0, *mean, 0.0]).collect() };
    let before = blocks(&[10.0, 20.0, 30.0, 40.0]);
    assert_eq!(before.differs(&blocks(&[10.0, 29.0, 21.0, 40.0])), 0);
    assert_eq!(before.differs(&blocks(&[10.0, 31.0, 19.0, 40.0])), 2);
    assert_eq!(before.differs(&blocks(&[10.0, 20.0])), 4, "of another size");
}
