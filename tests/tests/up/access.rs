//! The page of `up --ui` and of `view` by the rules of WCAG 2.1 that axe-core can decide, in light and dark.

use kubewright_tests::{
    Up,
    browser::{Browser, Scheme},
    needed,
};
use serde_json::json;

use crate::shop::Viewed;

/// What the page breaks of levels A and AA: which rule, where, and why.
const BROKEN: &str = "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations']}).then((found) => {
    if (found.passes.length < 10) throw new Error('hardly a rule was applied');
    return found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html} ${node.failureSummary}`));
})";

/// Holds what is shown to the rules, in light and dark.
fn check(browser: &mut Browser, what: &str) {
    for scheme in [Scheme::Light, Scheme::Dark] {
        browser.show_in(scheme);
        let broken = browser.value(BROKEN);
        assert_eq!(broken, json!([]), "{what} in {scheme:?}");
    }
}

/// Opens the page with axe in it. What DevTools evaluates is outside of the page's policy.
async fn open(browser: &mut Browser, address: &str, status: &str) {
    browser.open(address);
    browser.until(&format!("document.querySelector('#status').textContent === '{status}'")).await;
    let axe = std::fs::read_to_string(needed("AXE")).expect("axe-core");
    browser.value(&format!("{axe}; 0"));
}

#[tokio::test]
#[ignore = "needs Chromium and axe-core: cargo xtask test"]
async fn the_page_of_a_cluster_keeps_the_rules_of_wcag_in_light_and_dark() {
    let up = Up::start("access", &["--ui", "--clock=2030-01-01T00:00:00Z,speed=1"]);
    let mut browser = Browser::start("access-profile");
    open(&mut browser, up.link(), "live").await;
    browser.until("document.querySelector('#tree .line .name')").await;
    check(&mut browser, "the tree");
    browser.click("#page-reconciles");
    check(&mut browser, "reconciles, of which there are none");
    browser.click("#page-requests");
    browser.until("document.querySelectorAll('#requests tbody td').length > 5").await;
    check(&mut browser, "requests");
    browser.click("#page-controls");
    browser.until("document.querySelector('#controls .large').innerText.startsWith('2030-01-01 00:')").await;
    browser.value("[...document.querySelectorAll('#controls button')].find((one) => one.textContent === 'Inject').click()");
    browser.until("document.querySelector('#controls tbody').innerText.includes('conflict')").await;
    check(&mut browser, "time and faults");
    assert_eq!(browser.errors, [""; 0]);
}

#[tokio::test]
#[ignore = "needs Chromium and axe-core: cargo xtask test"]
async fn the_page_of_a_recording_keeps_the_rules_of_wcag_in_light_and_dark() {
    let viewed = Viewed::shop("access-recording");
    let mut browser = Browser::start("access-recording-profile");
    let pod = "object=%2Fpods%7Cshop%2Fbooks-2-0";
    open(&mut browser, &format!("{}&{pod}", viewed.link()), "recording").await;
    browser.until("document.querySelector('.yaml')").await;
    check(&mut browser, "a tree and an object that fails");
    browser.click(".tab:not([aria-selected=true])");
    browser.until("document.querySelector('.changes .diff')").await;
    check(&mut browser, "the history of an object");
    browser.click(".change:last-child > .link");
    browser.until("document.body.classList.contains('past')").await;
    browser.until("!document.querySelector('#object').hasAttribute('aria-busy')").await;
    browser.click("#axis");
    check(&mut browser, "the timeline by order, and a moment of the past");
    browser.click("#live");
    browser.click("#states .chip");
    browser.until("document.querySelector('#states .chip').getAttribute('aria-pressed') === 'true'").await;
    check(&mut browser, "what fails");
    browser.click("#page-reconciles");
    browser.until("document.querySelectorAll('#reconciles tbody .badge.failing').length > 1").await;
    browser.click("#reconciles tbody button[aria-expanded=false]");
    browser.until("document.querySelectorAll('.accesses').length === 1").await;
    browser.click("#reconciles tbody button[aria-expanded=false]");
    browser.until("document.querySelectorAll('.accesses .badge.failing').length > 0 && document.querySelectorAll('.accesses .link').length > 2").await;
    check(&mut browser, "reconciles, and what two of them read and wrote");
    browser.click("#page-requests");
    browser.until("document.querySelector('#requests tbody').innerText.includes('409')").await;
    check(&mut browser, "requests");
    assert_eq!(browser.errors, [""; 0]);
}
