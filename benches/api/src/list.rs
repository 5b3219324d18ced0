//! Lists of many ConfigMaps: full, paged, by label.
use crate::client::{JSON, Result, field};
use crate::crud::{cm_name, configmap};
use crate::stats::Sample;
use crate::{Conn, Ctx};
use hyper::Method;
use std::time::Instant;

/// Objects in a list body, by our name prefix.
fn count(body: &[u8]) -> usize {
    memchr::memmem::find_iter(body, b"\"name\":\"cm-").count()
}

/// The whole list in pages of 500: (objects' bytes, pages).
async fn paged(conn: &mut Conn, path: &str) -> Result<(usize, usize)> {
    let (mut bytes, mut pages, mut url) = (0, 0, format!("{path}?limit=500"));
    loop {
        let b = conn.get(&url).await?;
        bytes += b.len();
        pages += 1;
        match field(&b, b"\"continue\":\"") {
            Some(token) if !token.is_empty() => url = format!("{path}?limit=500&continue={}", encode(token)),
            _ => return Ok((bytes, pages)),
        }
    }
}

fn encode(s: &str) -> String {
    s.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                (b as char).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

pub async fn list(x: &Ctx) -> Result<()> {
    let n = x.o.list_n;
    let c = x.o.c.iter().copied().max().unwrap_or(1);
    let ns = x.namespace("list").await?;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let p = path.clone();
    x.measure("list-setup(create)", c, n, async move |conn, i| {
        let labels =
            if i % 100 == 0 { r#","labels":{"bench":"hit"}"# } else { r#","labels":{"bench":"miss"}"# };
        conn.ok(Method::POST, &p, JSON, configmap(&cm_name(i), labels, "0")).await.map(drop)
    })
    .await?;

    let mut conn = x.target.connect().await?;
    let selected = format!("{path}?labelSelector=bench%3Dhit");
    for (url, want) in [(&path, n), (&selected, n.div_ceil(100))] {
        let got = count(&conn.get(url).await?);
        if got != want {
            return Err(format!("GET {url}: {got} objects, not {want}").into());
        }
    }
    for (row, query, objects, runs) in [
        ("list-full", "", n, 5),
        ("list-full-rv0", "?resourceVersion=0", n, 5),
        ("list-paged-500", "paged", n, 3),
        ("list-label-1%", "?labelSelector=bench%3Dhit", n.div_ceil(100), 20),
    ] {
        let (mut s, mut size, mut firsts, mut pages) = (Sample::default(), 0, Vec::new(), 1);
        x.report.borrow_mut().start();
        let begin = Instant::now();
        for _ in 0..runs {
            let t = Instant::now();
            if query == "paged" {
                (size, pages) = paged(&mut conn, &path).await?;
            } else {
                let (bytes, first) = conn.drain(&format!("{path}{query}")).await?;
                size = bytes;
                firsts.push(first * 1e3);
            }
            s.lat.push(t.elapsed());
        }
        s.elapsed = begin.elapsed();
        let per_s = (objects * runs) as f64 / s.elapsed.as_secs_f64();
        firsts.sort_unstable_by(f64::total_cmp);
        let note = if pages > 1 {
            format!("{pages} pages, {:.1} MiB, {per_s:.0} objects/s", size as f64 / 1048576.0)
        } else {
            let first = crate::stats::quantile(&firsts, 0.5);
            format!(
                "{objects} objects, {:.1} MiB, {per_s:.0} objects/s, first byte {first:.0} ms",
                size as f64 / 1048576.0
            )
        };
        x.report.borrow().row(row, 1, runs, &s, note);
    }
    x.delete_all("list-clear(delete)", path, n, cm_name).await?;
    x.drop_namespace(&ns).await
}
