//! Definitions as trees, so that they can be changed as people change them.

use saga_core::machine::{ArmOf, Effect, Shape, StepShape, UndoShape};

/// Draws from a seed.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.number() % u64::try_from(count.max(1)).expect("it is small")).expect("it is small")
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Steps that come one after the other.
pub(crate) type Row = Vec<Node>;

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Step(StepShape),
    Group(Vec<Row>),
    Choice {
        name: &'static str,
        arms: Vec<(&'static str, Row)>,
        /// Whether one of its arms always runs.
        is_total: bool,
    },
}

/// The names of steps and choices, those of the first version in front.
const NAMES: [&str; 40] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w",
    "x", "y", "z", "aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj", "kk", "ll", "mm", "nn",
];
pub(crate) const ARMS: [&str; 5] = ["left", "right", "up", "down", "otherwise"];

/// Makes trees, and changes them.
pub(crate) struct Gardener<'a> {
    pub(crate) draws: &'a mut Draws,
    names: usize,
}

impl<'a> Gardener<'a> {
    pub(crate) fn new(draws: &'a mut Draws) -> Self {
        Self { draws, names: 0 }
    }

    fn name(&mut self) -> &'static str {
        self.names += 1;
        NAMES[(self.names - 1) % NAMES.len()]
    }

    pub(crate) fn step(&mut self) -> Node {
        let effect = [Effect::Transactional, Effect::Transactional, Effect::External][self.draws.below(3)];
        let undos = [UndoShape::TakesUnknown, UndoShape::TakesUnknown, UndoShape::NotNeeded, UndoShape::Missing];
        let undo = undos[self.draws.below(undos.len())];
        Node::Step(StepShape::new(self.name(), effect, undo))
    }

    /// So many pieces, of which some have steps inside.
    pub(crate) fn row(&mut self, pieces: usize, depth: usize) -> Row {
        (0..pieces).map(|_| self.piece(depth)).collect()
    }

    fn piece(&mut self, depth: usize) -> Node {
        match self.draws.below(if depth == 0 { 1 } else { 5 }) {
            0 | 1 => self.step(),
            2 => Node::Group((0..2).map(|_| self.row(1, depth - 1)).collect()),
            _ => {
                let (name, count) = (self.name(), 1 + self.draws.below(2));
                let arms = ARMS[..count].iter().map(|arm| {
                    let pieces = self.draws.below(3);
                    (*arm, self.row(pieces, depth - 1))
                });
                Node::Choice { name, arms: arms.collect(), is_total: self.draws.chance(40) }
            }
        }
    }

    /// One of the steps that the pivot may be: it runs alone, and always.
    pub(crate) fn pivot(&mut self, tree: &Row) -> Option<&'static str> {
        let alone: Vec<&'static str> = alone(tree).collect();
        if self.draws.chance(20) {
            return None;
        }
        alone.get(self.draws.below(alone.len())).copied()
    }

    /// Changes the steps at one place.
    pub(crate) fn edit(&mut self, tree: &mut Row) {
        match self.draws.below(9) {
            0 | 1 => {
                let step = self.step();
                self.put(tree, step);
            }
            2 => _ = self.take(tree),
            3 | 4 => {
                if let Some(node) = self.take(tree) {
                    self.put(tree, node);
                }
            }
            5 => self.wrap(tree),
            6 => self.dissolve(tree),
            _ => self.change_arms(tree),
        }
    }

    fn put(&mut self, tree: &mut Row, node: Node) {
        let row = self.draws.below(rows(tree));
        let row = row_at(tree, row).expect("there are so many");
        let place = self.draws.below(row.len() + 1);
        row.insert(place, node);
    }

    fn take(&mut self, tree: &mut Row) -> Option<Node> {
        let row = self.draws.below(rows(tree));
        let row = row_at(tree, row)?;
        let place = self.draws.below(row.len());
        (place < row.len()).then(|| row.remove(place))
    }

    /// What stands there from now on stands in an arm.
    fn wrap(&mut self, tree: &mut Row) {
        let (name, row) = (self.name(), self.draws.below(rows(tree)));
        let row = row_at(tree, row).expect("there are so many");
        let from = self.draws.below(row.len() + 1);
        let until = from + self.draws.below(row.len() - from + 1);
        let inside: Row = row.drain(from..until).collect();
        let mut arms = vec![(ARMS[0], inside)];
        if self.draws.chance(50) {
            let step = self.step();
            arms.push((ARMS[1], vec![step]));
        }
        row.insert(from, Node::Choice { name, arms, is_total: self.draws.chance(40) });
    }

    /// A choice goes, and the steps of some of its arms stay.
    fn dissolve(&mut self, tree: &mut Row) {
        let Some(row) = row_with_choice(tree, self.draws) else { return };
        let place = row.iter().position(|node| matches!(node, Node::Choice { .. })).expect("there is one");
        let Node::Choice { arms, .. } = row.remove(place) else { return };
        let kept = arms.into_iter().filter(|_| self.draws.chance(70)).flat_map(|(_, steps)| steps);
        let kept: Row = kept.collect();
        row.splice(place..place, kept);
    }

    fn change_arms(&mut self, tree: &mut Row) {
        let fresh = self.step();
        let what = self.draws.below(4);
        let Some(row) = row_with_choice(tree, self.draws) else { return };
        let choice = row.iter_mut().find(|node| matches!(node, Node::Choice { .. }));
        let Some(Node::Choice { arms, is_total, .. }) = choice else { return };
        let free = ARMS.iter().find(|arm| arms.iter().all(|(name, _)| name != *arm)).copied();
        match what {
            0 => arms.rotate_left(1),
            1 if arms.len() > 1 => _ = arms.pop(),
            2 => arms.extend(free.map(|arm| (arm, vec![fresh]))),
            _ => *is_total = !*is_total,
        }
    }
}

fn inner(node: &mut Node) -> Vec<&mut Row> {
    match node {
        Node::Step(_) => Vec::new(),
        Node::Group(branches) => branches.iter_mut().collect(),
        Node::Choice { arms, .. } => arms.iter_mut().map(|(_, row)| row).collect(),
    }
}

/// How many rows there are, with that one and all inside it.
fn rows(row: &mut Row) -> usize {
    1 + row.iter_mut().flat_map(inner).map(rows).sum::<usize>()
}

fn row_at(row: &mut Row, number: usize) -> Option<&mut Row> {
    if number == 0 {
        return Some(row);
    }
    let mut left = number - 1;
    for inside in row.iter_mut().flat_map(inner) {
        let count = rows(inside);
        if left < count {
            return row_at(inside, left);
        }
        left -= count;
    }
    None
}

fn row_with_choice<'a>(tree: &'a mut Row, draws: &mut Draws) -> Option<&'a mut Row> {
    let has_choice = |row: &Row| row.iter().any(|node| matches!(node, Node::Choice { .. }));
    let count = rows(tree);
    let with: Vec<usize> =
        (0..count).filter(|number| row_at(tree, *number).is_some_and(|row| has_choice(row))).collect();
    if with.is_empty() {
        return None;
    }
    let number = with[draws.below(with.len())];
    row_at(tree, number)
}

/// The names of the steps that stand in no group and in no arm.
fn alone(tree: &Row) -> impl Iterator<Item = &'static str> {
    tree.iter().filter_map(|node| if let Node::Step(step) = node { Some(step.name) } else { None })
}

/// What the machine knows of the tree. The step of that name is its pivot where it still stands alone.
pub(crate) fn shape_of(tree: &Row, pivot: Option<&str>) -> Shape {
    let mut lowered = Lowered { steps: Vec::new(), tips: Vec::new(), within: None };
    lowered.row(tree);
    let pivot = pivot.filter(|pivot| alone(tree).any(|step| step == *pivot));
    let mut shape = Shape { steps: lowered.steps, pivot: None };
    shape.pivot = pivot.and_then(|pivot| shape.position(pivot));
    // As a builder has it: what stands before the pivot has a compensation, or says that it needs none.
    let before = shape.pivot.unwrap_or(shape.steps.len());
    for step in shape.steps[..before].iter_mut().filter(|step| step.undo == UndoShape::Missing) {
        step.undo = UndoShape::TakesUnknown;
    }
    shape
}

struct Lowered {
    steps: Vec<StepShape>,
    tips: Vec<usize>,
    within: Option<ArmOf>,
}

impl Lowered {
    fn row(&mut self, row: &Row) {
        for node in row {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Step(step) => _ = self.add(step.clone()),
            Node::Group(branches) => {
                let (from, mut ends) = (self.tips.clone(), Vec::new());
                // Whoever takes the last step of a branch takes the branch.
                for branch in branches.iter().filter(|branch| !branch.is_empty()) {
                    self.tips.clone_from(&from);
                    self.row(branch);
                    ends.append(&mut self.tips);
                }
                ends.dedup();
                self.tips = if ends.is_empty() { from } else { ends };
            }
            Node::Choice { name, arms, is_total } => {
                let shape = StepShape::new(name, Effect::Own, UndoShape::NotNeeded);
                let arms_of = arms.iter().map(|(name, _)| *name).collect();
                let (within, choice) = (self.within, self.add(StepShape { arms: arms_of, ..shape }));
                let mut ends = if *is_total { Vec::new() } else { vec![choice] };
                for (arm, (_, row)) in arms.iter().enumerate() {
                    (self.tips, self.within) = (vec![choice], Some(ArmOf { choice, arm }));
                    self.row(row);
                    ends.append(&mut self.tips);
                }
                ends.sort_unstable();
                ends.dedup();
                (self.tips, self.within) = (ends, within);
            }
        }
    }

    fn add(&mut self, shape: StepShape) -> usize {
        let index = self.steps.len();
        let after = std::mem::replace(&mut self.tips, vec![index]);
        let is_plain = after == index.checked_sub(1).into_iter().collect::<Vec<_>>();
        self.steps.push(StepShape { after: (!is_plain).then_some(after), within: self.within, ..shape });
        index
    }
}
