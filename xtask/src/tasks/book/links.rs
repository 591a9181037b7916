//! The links of the built guide.
//!
//! Tidy follows the links of the chapters. The pages have more of them: the menu, the headings, and what mdBook makes of
//! a link to a file that is no chapter.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The result of following all links.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) count: usize,
    /// The links that lead nowhere, each with its page.
    pub(super) dead: Vec<String>,
}

/// Follows every link of the pages in a folder to a file or a heading. A link to a markdown file that is no chapter, which
/// mdBook turned into one to a page, is turned back.
pub(super) fn follow(folder: &Path) -> Result<Followed> {
    let mut followed = Followed::default();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let page = entry?.path();
        let is_page = page.extension().is_some_and(|extension| extension == "html");
        // The page for what is not found stands anywhere, so its links are absolute.
        if !is_page || page.ends_with("404.html") {
            continue;
        }
        let html = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let mended = followed.follow_page(&page, &html);
        if mended != html {
            fs::write(&page, mended).with_context(|| format!("cannot write {}", page.display()))?;
        }
    }
    Ok(followed)
}

impl Followed {
    /// The page with its links mended.
    fn follow_page(&mut self, page: &Path, html: &str) -> String {
        let mut mended = String::with_capacity(html.len());
        let mut rest = html;
        while let Some((before, link, behind)) = next_link(rest) {
            mended.push_str(before);
            mended.push_str(&self.follow_link(page, html, link));
            rest = behind;
        }
        mended + rest
    }

    fn follow_link(&mut self, page: &Path, html: &str, link: &str) -> String {
        if link.contains(':') || link.is_empty() {
            return link.to_owned();
        }
        self.count += 1;
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        let beside = page.parent().unwrap_or(page);
        let page_of = path.strip_suffix(".html");
        let markdown = page_of.map(|path| format!("{path}.md"));
        let leads_somewhere = if path.is_empty() {
            has_heading(html, heading)
        } else if !beside.join(path).exists() {
            if let Some(markdown) = markdown.filter(|markdown| beside.join(markdown).exists()) {
                return link.replacen(path, &markdown, 1);
            }
            false
        } else if page_of.is_some() {
            fs::read_to_string(beside.join(path)).is_ok_and(|html| has_heading(&html, heading))
        } else {
            true
        };
        if !leads_somewhere {
            self.dead.push(format!("{}: {link}", page.display()));
        }
        link.to_owned()
    }
}

/// What stands before the next link, the link, and what stands behind it.
fn next_link(html: &str) -> Option<(&str, &str, &str)> {
    let starts = ["href=\"", "src=\""].into_iter();
    let start = starts.filter_map(|attribute| html.find(attribute).map(|at| at + attribute.len())).min()?;
    let length = html[start..].find('"')?;
    Some((&html[..start], &html[start..start + length], &html[start + length..]))
}

fn has_heading(html: &str, heading: &str) -> bool {
    heading.is_empty() || html.contains(&format!("id=\"{heading}\""))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::follow;

    #[test]
    fn dead_links_are_found_and_links_to_markdown_mended() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file can be written");
        write("glossary.md", "# Glossary\n");
        write("steps.html", "<h1 id=\"pivot\"></h1> <a href=\"#pivot\"></a>");
        write(
            "index.html",
            "<a href=\"steps.html#pivot\"></a> <a href=\"steps.html#none\"></a> <a href=\"glossary.html#claim\"></a>
             <a href=\"https://example.com/x\"></a> <img src=\"none.png\"> <a href=\"glossary.md\"></a>",
        );
        let followed = follow(folder.path()).expect("the pages can be read");
        let mut dead: Vec<&str> = followed.dead.iter().filter_map(|dead| dead.split(": ").nth(1)).collect();
        dead.sort_unstable();
        assert_eq!((followed.count, dead), (6, vec!["none.png", "steps.html#none"]));
        let mended = fs::read_to_string(folder.path().join("index.html")).expect("it is there");
        assert!(mended.contains("href=\"glossary.md#claim\""), "{mended}");
    }
}
