//! The page: files of this program, served from memory.

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file of a path; `None` where there is none.
pub(crate) fn asset(path: &str) -> Option<Asset> {
    let (media_type, bytes): (_, &[u8]) = match path {
        "/" => ("text/html; charset=utf-8", include_bytes!("../page/index.html")),
        "/style.css" => ("text/css; charset=utf-8", include_bytes!("../page/style.css")),
        "/main.js" => (SCRIPT, include_bytes!("../page/main.js")),
        "/dom.js" => (SCRIPT, include_bytes!("../page/dom.js")),
        "/model.js" => (SCRIPT, include_bytes!("../page/model.js")),
        "/client.js" => (SCRIPT, include_bytes!("../page/client.js")),
        "/tree.js" => (SCRIPT, include_bytes!("../page/tree.js")),
        "/object.js" => (SCRIPT, include_bytes!("../page/object.js")),
        "/timeline.js" => (SCRIPT, include_bytes!("../page/timeline.js")),
        "/reports.js" => (SCRIPT, include_bytes!("../page/reports.js")),
        "/reconciles.js" => (SCRIPT, include_bytes!("../page/reconciles.js")),
        "/requests.js" => (SCRIPT, include_bytes!("../page/requests.js")),
        "/controls.js" => (SCRIPT, include_bytes!("../page/controls.js")),
        _ => return None,
    };
    Some(Asset { media_type, bytes })
}
