//! Places that workspaces share fairly: who has none yet goes before who has some, and those who wait are taken
//! in turn, one of each workspace. A few places are kept for workspaces that have none, so that one workspace
//! never has them all.

use std::collections::{HashMap, VecDeque};

/// Who has a place, and who waits for one. `W` is how a waiting one is told.
#[derive(Debug)]
pub(crate) struct Turns<W> {
    /// Places for everybody.
    shared: usize,
    /// Places besides, for workspaces that have none.
    kept: usize,
    taken: HashMap<String, usize>,
    /// Workspaces in the order of their turns, each once, with who waits.
    waiting: VecDeque<(String, VecDeque<W>)>,
}

impl<W> Turns<W> {
    pub(crate) fn new(shared: usize, kept: usize) -> Self {
        Self {
            shared: shared.max(1),
            kept,
            taken: HashMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Whether a workspace may have one more place now.
    fn has_room(&self, workspace: &str) -> bool {
        let taken: usize = self.taken.values().sum();
        let most = match self.taken.contains_key(workspace) {
            true => self.shared,
            false => self.shared + self.kept,
        };
        taken < most
    }

    /// Takes a place, if there is one and nobody of the workspace waits already.
    pub(crate) fn take(&mut self, workspace: &str) -> bool {
        let waits = self.waiting.iter().any(|(name, _)| name == workspace);
        let free = !waits && self.has_room(workspace);
        if free {
            self.count(workspace);
        }
        free
    }

    /// Waits for a place.
    pub(crate) fn wait(&mut self, workspace: &str, waiter: W) {
        let known = self.waiting.iter_mut().find(|(name, _)| name == workspace);
        match known {
            Some((_, waiters)) => waiters.push_back(waiter),
            None => {
                let waiters = VecDeque::from([waiter]);
                self.waiting.push_back((workspace.to_owned(), waiters));
            }
        }
    }

    /// Gives a place back.
    pub(crate) fn give_back(&mut self, workspace: &str) {
        if let Some(taken) = self.taken.get_mut(workspace) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(workspace);
            }
        }
    }

    /// The next who waits and may have a place, which is taken for it. Workspaces without a place go first.
    pub(crate) fn next(&mut self) -> Option<(String, W)> {
        let none = |name: &str| !self.taken.contains_key(name);
        let first = self.waiting.iter().position(|(name, _)| none(name));
        let at = first.or(if self.waiting.is_empty() {
            None
        } else {
            Some(0)
        })?;
        if !self.has_room(&self.waiting[at].0) {
            return None;
        }
        let (workspace, mut waiters) = self.waiting.remove(at)?;
        let waiter = waiters.pop_front()?;
        self.count(&workspace);
        if !waiters.is_empty() {
            self.waiting.push_back((workspace.clone(), waiters));
        }
        Some((workspace, waiter))
    }

    fn count(&mut self, workspace: &str) {
        *self.taken.entry(workspace.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_workspace_never_has_all_places() {
        let mut turns: Turns<u8> = Turns::new(2, 1);
        assert!(turns.take("a") && turns.take("a") && !turns.take("a"));
        turns.wait("a", 1);
        assert_eq!(turns.next(), None);
        // The place that is kept; a third workspace waits for the first that comes free.
        assert!(turns.take("b") && !turns.take("c"));
        turns.wait("b", 2);
        turns.wait("c", 3);
        turns.give_back("a");
        assert_eq!(turns.next(), Some(("c".to_owned(), 3)));
        assert_eq!(turns.next(), None);
        turns.give_back("a");
        turns.give_back("c");
        // `a` has none any more and waits the longest.
        assert_eq!(turns.next(), Some(("a".to_owned(), 1)));
        assert_eq!(turns.next(), None);
        turns.give_back("a");
        assert_eq!(turns.next(), Some(("b".to_owned(), 2)));
        assert_eq!(turns.next(), None);
    }

    #[test]
    fn who_waits_is_taken_in_turn() {
        let mut turns = Turns::new(1, 0);
        assert!(turns.take("x"));
        for (workspace, at) in [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("b", 5)] {
            turns.wait(workspace, at);
        }
        turns.give_back("x");
        let mut order = Vec::new();
        while let Some((workspace, at)) = turns.next() {
            order.push(at);
            turns.give_back(&workspace);
        }
        assert_eq!(order, [1, 3, 2, 5, 4]);
        assert!(turns.take("b"));
    }
}
