//! Which file imports which, as a graph: its circles and its layers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::import::Import;

/// One import that makes an edge of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) item: String,
    pub(crate) line: usize,
}

/// Files, or folders, and what each imports of which other.
#[derive(Debug, Default)]
pub(crate) struct Graph(BTreeMap<String, BTreeMap<String, Vec<Edge>>>);

impl Graph {
    /// The graph of the imports, each end called by `name`; ends without a name are left out.
    pub(crate) fn of(imports: &[Import<'_>], name: impl Fn(&str) -> Option<String>) -> Self {
        let mut graph = Self::default();
        for import in imports.iter().filter(|import| !import.is_re_export) {
            if let (Some(from), Some(to)) = (name(import.from), name(import.to))
                && from != to
            {
                graph.0.entry(to.clone()).or_default();
                let edges = graph.0.entry(from).or_default().entry(to).or_default();
                if edges.iter().all(|edge| edge.item != import.item) {
                    edges.push(Edge { item: import.item.clone(), line: import.line });
                }
            }
        }
        graph
    }

    /// Adds what imports nothing and is imported by nothing.
    pub(crate) fn add(&mut self, name: String) {
        self.0.entry(name).or_default();
    }

    /// What `from` imports, by the name of the other end.
    pub(crate) fn imports_of(&self, from: &str) -> impl Iterator<Item = (&str, &[Edge])> {
        self.0.get(from).into_iter().flatten().map(|(to, edges)| (to.as_str(), edges.as_slice()))
    }

    /// The parts within which each imports each, directly or by others: most have one member, and more are a circle. Each
    /// comes behind all that it imports.
    pub(crate) fn components(&self) -> Vec<BTreeSet<&str>> {
        let mut tarjan = Tarjan { graph: self, seen: BTreeMap::new(), stack: Vec::new(), components: Vec::new() };
        for name in self.0.keys() {
            tarjan.visit(name);
        }
        tarjan.components
    }

    /// The components by layers: each imports of lower layers only.
    pub(crate) fn layers(&self) -> Vec<Vec<BTreeSet<&str>>> {
        let mut layer_of: BTreeMap<&str, usize> = BTreeMap::new();
        let mut layers: Vec<Vec<BTreeSet<&str>>> = Vec::new();
        for component in self.components() {
            let imported = component.iter().flat_map(|name| self.imports_of(name).map(|(to, _)| to));
            let below = imported.filter_map(|to| layer_of.get(to).map(|layer| layer + 1));
            let layer = below.max().unwrap_or(0);
            layer_of.extend(component.iter().map(|name| (*name, layer)));
            layers.resize_with(layers.len().max(layer + 1), Vec::new);
            layers[layer].push(component);
        }
        layers
    }

    /// The shortest way along the imports from `start` back to itself, without the second `start`. Empty without a circle.
    pub(crate) fn shortest_circle<'a>(&'a self, start: &'a str) -> Vec<&'a str> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(name) = queue.pop_front() {
            for (to, _) in self.imports_of(name) {
                if to == start {
                    let mut way = vec![name];
                    while let Some(before) = came_from.get(way[way.len() - 1]) {
                        way.push(before);
                    }
                    way.reverse();
                    return way;
                }
                if !came_from.contains_key(to) {
                    came_from.insert(to, name);
                    queue.push_back(to);
                }
            }
        }
        Vec::new()
    }
}

/// Tarjan's algorithm.
struct Tarjan<'a> {
    graph: &'a Graph,
    /// The order in which each name was met, and the earliest that can be reached from it; none once its component is known.
    seen: BTreeMap<&'a str, (usize, Option<usize>)>,
    stack: Vec<&'a str>,
    components: Vec<BTreeSet<&'a str>>,
}

impl<'a> Tarjan<'a> {
    /// The earliest name on the stack that can be reached from this one.
    fn visit(&mut self, name: &'a str) -> Option<usize> {
        if let Some((order, earliest)) = self.seen.get(name) {
            return earliest.map(|_| *order);
        }
        let order = self.seen.len();
        self.seen.insert(name, (order, Some(order)));
        self.stack.push(name);
        let mut earliest = order;
        for (to, _) in self.graph.imports_of(name) {
            earliest = self.visit(to).map_or(earliest, |reached| reached.min(earliest));
        }
        if earliest == order {
            let begin = self.stack.iter().position(|other| *other == name).unwrap_or_default();
            let component: BTreeSet<&str> = self.stack.split_off(begin).into_iter().collect();
            for name in &component {
                self.seen.entry(name).and_modify(|(_, earliest)| *earliest = None);
            }
            self.components.push(component);
            return None;
        }
        Some(earliest)
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;
    use crate::tidy::workspace::modules::Import;

    fn graph(edges: &[(&'static str, &'static str)]) -> Graph {
        let import = |&(from, to)| Import { from, line: 1, to, item: "X".to_owned(), is_re_export: false };
        Graph::of(&edges.iter().map(import).collect::<Vec<_>>(), |name| Some(name.to_owned()))
    }

    fn layers(edges: &[(&'static str, &'static str)]) -> Vec<Vec<String>> {
        let joined = |part: std::collections::BTreeSet<&str>| part.into_iter().collect::<String>();
        graph(edges).layers().into_iter().map(|layer| layer.into_iter().map(joined).collect()).collect()
    }

    #[test]
    fn layers_stand_on_what_they_import() {
        assert_eq!(layers(&[("a", "b"), ("b", "c"), ("a", "d")]), [vec!["c", "d"], vec!["b"], vec!["a"]]);
    }

    #[test]
    fn a_circle_is_one_component() {
        let two = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")];
        assert_eq!(layers(&two), [vec!["de"], vec!["abc"], vec!["f"]]);
        let figure_of_eight = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")];
        assert_eq!(layers(&figure_of_eight), [vec!["abc"]]);
    }

    #[test]
    fn the_shortest_circle_is_found() {
        let graph = graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("d", "a")]);
        assert_eq!(graph.shortest_circle("a"), ["a", "b"]);
        assert_eq!(graph.shortest_circle("c"), ["c", "a", "b"]);
        assert_eq!(graph.shortest_circle("d"), [""; 0]);
    }

    #[test]
    fn a_re_export_is_no_edge() {
        let import = Import { from: "a", line: 1, to: "b", item: "X".to_owned(), is_re_export: true };
        assert!(Graph::of(&[import], |name| Some(name.to_owned())).components().is_empty());
    }
}
