//! Which imports to remove, so that a circle is none.

use std::collections::BTreeSet;

use super::graph::{Edge, Graph};

/// A few imports inside the component without which it has no circle: from, to, and the items.
///
/// The fewest are hard to find; these are what the method of Eades, Lin and Smyth leaves over: it puts the members in an order
/// in which most imports lead on.
pub(crate) fn cuts<'a>(graph: &'a Graph, component: &BTreeSet<&'a str>) -> Vec<(&'a str, &'a str, &'a [Edge])> {
    let order = order(graph, component);
    let place = |name: &str| order.iter().position(|other| *other == name);
    let mut cuts = Vec::new();
    for from in &order {
        for (to, edges) in graph.imports_of(from) {
            if place(to).is_some_and(|to| Some(to) < place(from)) {
                cuts.push((*from, to, edges));
            }
        }
    }
    cuts.sort_by_key(|(_, _, edges)| edges.len());
    cuts
}

/// The members, each mostly before what it imports.
fn order<'a>(graph: &'a Graph, component: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let mut left = component.clone();
    let mut first = Vec::new();
    let mut last = Vec::new();
    while !left.is_empty() {
        let imports = |name: &str| -> usize {
            graph.imports_of(name).filter(|(to, _)| left.contains(to)).map(|(_, edges)| edges.len()).sum()
        };
        let imported = |name: &str| -> usize {
            let others = left.iter().flat_map(|other| graph.imports_of(other));
            others.filter(|(to, _)| *to == name).map(|(_, edges)| edges.len()).sum()
        };
        if let Some(name) = left.iter().copied().find(|name| imports(name) == 0) {
            last.push(name);
            left.remove(name);
        } else if let Some(name) = left.iter().copied().max_by_key(|name| {
            let (imports, imported) = (imports(name), imported(name));
            (imported == 0, imports.saturating_sub(imported), usize::MAX - imported)
        }) {
            first.push(name);
            left.remove(name);
        }
    }
    first.extend(last.into_iter().rev());
    first
}

#[cfg(test)]
mod tests {
    use super::cuts;
    use crate::tidy::workspace::modules::{Graph, Import};

    fn cut(edges: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        let import = |(at, &(from, to))| Import { from, line: 1, to, item: format!("X{at}"), is_re_export: false };
        let imports: Vec<Import<'_>> = edges.iter().enumerate().map(import).collect();
        let graph = Graph::of(&imports, |name| Some(name.to_owned()));
        let component = graph.components().into_iter().max_by_key(std::collections::BTreeSet::len).unwrap_or_default();
        cuts(&graph, &component).into_iter().map(|(from, to, _)| (from.to_owned(), to.to_owned())).collect()
    }

    #[test]
    fn the_import_that_leads_back_is_cut() {
        let down = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")];
        assert_eq!(cut(&[&down[..], &[("d", "a")]].concat()), [("d".to_owned(), "a".to_owned())]);
        assert_eq!(cut(&[("a", "b"), ("a", "b"), ("b", "a")]), [("b".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn without_a_circle_nothing_is_cut() {
        assert_eq!(cut(&[("a", "b"), ("b", "c")]), []);
    }
}
