//! How a processor is declared once, and read with its types or without them.

use super::spec::{Role, SpecRow, TopicScope};

/// Where instances of a processor live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessorScope {
    /// One per system.
    System,
    /// One per workspace.
    Workspace,
    /// One per flow, from a config row `processor:<id>`.
    Flow,
}

/// One processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorSpec {
    /// Processor id; part of queue names.
    pub id: &'static str,
    /// Where instances live.
    pub scope: ProcessorScope,
    /// Whether this release hosts it. Others appear in blueprints and arrive later.
    pub hosted: bool,
    /// All its specs; those of blueprints are [`ProcessorSpec::wired`].
    pub specs: &'static [SpecRow],
    /// Its parameters.
    pub parameters: &'static [&'static str],
}

impl ProcessorSpec {
    /// A processor that is not in the table and may have any spec: one of a test or an example.
    pub const fn unlisted(id: &'static str) -> Self {
        Self {
            id,
            scope: ProcessorScope::Flow,
            hosted: false,
            specs: &[],
            parameters: &[],
        }
    }

    /// Whether it may have any spec.
    pub const fn is_unlisted(&self) -> bool {
        self.specs.is_empty() && !self.hosted
    }

    /// The specs whose topics its config row names.
    pub fn wired(&self) -> impl Iterator<Item = &'static SpecRow> {
        let specs = self.specs.iter();
        specs.filter(|spec| spec.place == TopicScope::Flow)
    }

    /// The specs on topics that the mesh adds to each flow.
    pub fn own(&self) -> impl Iterator<Item = &'static SpecRow> {
        let specs = self.specs.iter();
        specs.filter(|spec| spec.place == TopicScope::Own)
    }

    /// A spec of its config row by name.
    pub fn spec(&self, name: &str) -> Option<&'static SpecRow> {
        self.wired().find(|spec| spec.name == name)
    }

    /// Whether it has a spec of this name, direction, message and place.
    pub fn has(&self, spec: &SpecRow) -> bool {
        let same = |own: &SpecRow| {
            (own.name, own.role, own.place) == (spec.name, spec.role, spec.place)
                && own.message == spec.message
        };
        self.specs.iter().any(same)
    }
}

/// A spec, and that of its replies.
pub(super) type Rows = (SpecRow, Option<SpecRow>);

/// What stands in a list that is being filled.
const NONE: SpecRow = SpecRow {
    name: "",
    role: Role::Reads,
    message: "",
    place: TopicScope::Flow,
    stream: None,
    keeps: false,
};

/// How many specs these are.
pub(super) const fn count(rows: &[Rows]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while at < rows.len() {
        sum += 1 + rows[at].1.is_some() as usize;
        at += 1;
    }
    sum
}

/// All of them in one list; for `N` of [`count`].
pub(super) const fn flatten<const N: usize>(rows: &[Rows]) -> [SpecRow; N] {
    let mut all = [NONE; N];
    let (mut at, mut to) = (0, 0);
    while at < rows.len() {
        all[to] = rows[at].0;
        to += 1;
        if let Some(response) = rows[at].1 {
            all[to] = response;
            to += 1;
        }
        at += 1;
    }
    all
}

/// How many processors these groups have.
pub(super) const fn count_all(groups: &[&[ProcessorSpec]]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while at < groups.len() {
        sum += groups[at].len();
        at += 1;
    }
    sum
}

/// All of them in one list; for `N` of [`count_all`].
pub(super) const fn join<const N: usize>(groups: &[&[ProcessorSpec]]) -> [ProcessorSpec; N] {
    let mut all = [groups[0][0]; N];
    let (mut group, mut to) = (0, 0);
    while group < groups.len() {
        let mut at = 0;
        while at < groups[group].len() {
            all[to] = groups[group][at];
            to += 1;
            at += 1;
        }
        group += 1;
    }
    all
}

/// Declares the processors of a file: a module each with its `PROCESSOR` and a constant for each spec, and the list of
/// them all. What follows `+` are constants of `shared.rs`.
macro_rules! processors {
    // `super` of a processor's module is the file that declares it.
    (@ $file:tt $(
        $(#[$doc:meta])*
        $module:ident($id:literal, $scope:ident, hosted: $hosted:literal $(, parameters: [$($parameter:literal),*])?) {
            $($name:ident: $kind:ty = $spec:expr;)*
            $(+ [$($shared:ident),* $(,)?];)?
        }
    )*) => {
        $(
            $(#[$doc])*
            pub mod $module {
                #[allow(unused_imports, reason = "some declare nothing but what they share")]
                use $file::*;

                $(
                    #[doc = concat!("`", stringify!($kind), "`")]
                    pub const $name: Spec<$kind> = $spec;
                )*
                $($(pub use $file::shared::$shared;)*)?

                const ROWS: &[Rows] = &[
                    $(($name.row(), $name.response_row()),)*
                    $($(($shared.row(), $shared.response_row()),)*)?
                ];
                const SPECS: [SpecRow; count(ROWS)] = flatten(ROWS);

                #[doc = concat!("The processor `", $id, "`.")]
                pub const PROCESSOR: ProcessorSpec = ProcessorSpec {
                    id: $id,
                    scope: ProcessorScope::$scope,
                    hosted: $hosted,
                    specs: &SPECS,
                    parameters: &[$($($parameter),*)?],
                };
            }
        )*

        /// The processors of this file.
        pub(super) const ALL: &[ProcessorSpec] = &[$($module::PROCESSOR),*];
    };
    ($($all:tt)*) => {
        processors! { @ super $($all)* }
    };
}
pub(super) use processors;
