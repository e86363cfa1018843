//! A parsed query with what bounds it: steps between which little happens, and texts of bounded length. The answer
//! stays the same.
//!
//! A step is an expression without a value that asks the [`super::guard`]. Leaves of a join take one a solution as a
//! filter, which the optimiser leaves at its leaf; everything else takes one as an extension by a variable that is
//! never bound, which the optimiser leaves where it is. So all that is collected anywhere came past a step.

use oxigraph::model::{Literal, Variable};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
};

use super::texts;

/// Puts steps and bounded functions into a query. Returns the separators of its `GROUP_CONCAT`s by position.
pub(super) fn rewrite(query: Query) -> (Query, Vec<String>) {
    let mut rewrite = Rewrite::default();
    let query = match query {
        Query::Select {
            dataset,
            pattern,
            base_iri,
        } => Query::Select {
            dataset,
            pattern: rewrite.whole(pattern),
            base_iri,
        },
        Query::Construct {
            template,
            dataset,
            pattern,
            base_iri,
        } => Query::Construct {
            template,
            dataset,
            pattern: rewrite.whole(pattern),
            base_iri,
        },
        Query::Describe {
            dataset,
            pattern,
            base_iri,
        } => Query::Describe {
            dataset,
            pattern: rewrite.whole(pattern),
            base_iri,
        },
        Query::Ask {
            dataset,
            pattern,
            base_iri,
        } => Query::Ask {
            dataset,
            pattern: rewrite.whole(pattern),
            base_iri,
        },
    };
    (query, rewrite.separators)
}

#[derive(Default)]
struct Rewrite {
    separators: Vec<String>,
    steps: usize,
}

fn step() -> Expression {
    Expression::FunctionCall(Function::Custom(texts::name(texts::STEP)), Vec::new())
}

/// The same value after a step.
fn after_step(expression: Expression) -> Expression {
    Expression::Coalesce(vec![step(), expression])
}

/// A leaf of a join.
fn leaf(pattern: GraphPattern) -> GraphPattern {
    GraphPattern::Filter {
        expr: after_step(Literal::from(true).into()),
        inner: Box::new(pattern),
    }
}

impl Rewrite {
    /// Anything whose solutions are collected somewhere.
    fn whole(&mut self, pattern: GraphPattern) -> GraphPattern {
        let is_leaf = match &pattern {
            GraphPattern::Bgp { patterns } => patterns.len() < 2,
            other => matches!(
                other,
                GraphPattern::Path { .. } | GraphPattern::Values { .. }
            ),
        };
        let pattern = self.pattern(pattern);
        if is_leaf {
            return pattern;
        }
        self.extended(pattern)
    }

    #[expect(clippy::boxed_local, reason = "the algebra boxes its parts")]
    fn boxed(&mut self, pattern: Box<GraphPattern>) -> Box<GraphPattern> {
        Box::new(self.whole(*pattern))
    }

    /// A step for each solution, unless that comes straight past one.
    fn extended(&mut self, pattern: GraphPattern) -> GraphPattern {
        match pattern {
            GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. }
            | GraphPattern::OrderBy { .. } => pattern,
            other => self.stepped(other),
        }
    }

    fn stepped(&mut self, pattern: GraphPattern) -> GraphPattern {
        self.steps += 1;
        GraphPattern::Extend {
            inner: Box::new(pattern),
            // No variable of a query has a blank in its name.
            variable: Variable::new_unchecked(format!("step {}", self.steps)),
            expression: step(),
        }
    }

    fn pattern(&mut self, pattern: GraphPattern) -> GraphPattern {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                let single = |pattern| {
                    leaf(GraphPattern::Bgp {
                        patterns: vec![pattern],
                    })
                };
                let joined = patterns.into_iter().map(single).reduce(|left, right| {
                    let (left, right) = (Box::new(left), Box::new(right));
                    GraphPattern::Join { left, right }
                });
                joined.unwrap_or(GraphPattern::Bgp {
                    patterns: Vec::new(),
                })
            }
            path @ GraphPattern::Path { .. } => leaf(path),
            values @ GraphPattern::Values { .. } => leaf(values),
            GraphPattern::Join { left, right } => GraphPattern::Join {
                left: Box::new(self.part(*left)),
                right: Box::new(self.part(*right)),
            },
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => GraphPattern::LeftJoin {
                left: self.boxed(left),
                right: self.boxed(right),
                expression: expression.map(|expression| self.expression(expression)),
            },
            GraphPattern::Lateral { left, right } => GraphPattern::Lateral {
                left: self.boxed(left),
                right: self.boxed(right),
            },
            GraphPattern::Union { left, right } => GraphPattern::Union {
                left: self.boxed(left),
                right: self.boxed(right),
            },
            GraphPattern::Minus { left, right } => GraphPattern::Minus {
                left: self.boxed(left),
                right: self.boxed(right),
            },
            GraphPattern::Filter { expr, inner } => GraphPattern::Filter {
                expr: self.expression(expr),
                inner: Box::new(self.pattern(*inner)),
            },
            GraphPattern::Graph { name, inner } => GraphPattern::Graph {
                name,
                inner: Box::new(self.pattern(*inner)),
            },
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => GraphPattern::Extend {
                inner: Box::new(self.pattern(*inner)),
                variable,
                expression: self.expression(expression),
            },
            other => self.modifier(other),
        }
    }

    /// What orders, groups and cuts solutions.
    fn modifier(&mut self, pattern: GraphPattern) -> GraphPattern {
        match pattern {
            GraphPattern::OrderBy { inner, expression } => GraphPattern::OrderBy {
                inner: self.boxed(inner),
                expression: expression.into_iter().map(|by| self.order(by)).collect(),
            },
            GraphPattern::Project { inner, variables } => GraphPattern::Project {
                inner: self.boxed(inner),
                variables,
            },
            GraphPattern::Distinct { inner } => GraphPattern::Distinct {
                inner: self.boxed(inner),
            },
            GraphPattern::Reduced { inner } => GraphPattern::Reduced {
                inner: self.boxed(inner),
            },
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => GraphPattern::Slice {
                inner: self.boxed(inner),
                start,
                length,
            },
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => GraphPattern::Group {
                inner: self.boxed(inner),
                variables,
                aggregates: aggregates
                    .into_iter()
                    .map(|(variable, aggregate)| (variable, self.aggregate(aggregate)))
                    .collect(),
            },
            // Nothing else is left but SERVICE SILENT, which nobody answers.
            other => other,
        }
    }

    /// A side of a join: joins within joins stay such, so that the optimiser can put them in order.
    fn part(&mut self, pattern: GraphPattern) -> GraphPattern {
        match pattern {
            GraphPattern::Bgp { .. }
            | GraphPattern::Path { .. }
            | GraphPattern::Values { .. }
            | GraphPattern::Join { .. } => self.pattern(pattern),
            GraphPattern::Graph { name, inner } => GraphPattern::Graph {
                name,
                inner: Box::new(self.part(*inner)),
            },
            other => {
                let other = self.pattern(other);
                self.stepped(other)
            }
        }
    }

    /// Sorting compares often, and reads nothing.
    fn order(&mut self, by: OrderExpression) -> OrderExpression {
        match by {
            OrderExpression::Asc(by) => OrderExpression::Asc(after_step(self.expression(by))),
            OrderExpression::Desc(by) => OrderExpression::Desc(after_step(self.expression(by))),
        }
    }

    fn aggregate(&mut self, aggregate: AggregateExpression) -> AggregateExpression {
        match aggregate {
            AggregateExpression::FunctionCall {
                name: AggregateFunction::GroupConcat { separator },
                expr,
                distinct,
            } => {
                let at = self.separators.len();
                self.separators
                    .push(separator.unwrap_or_else(|| " ".to_owned()));
                AggregateExpression::FunctionCall {
                    name: AggregateFunction::Custom(texts::group_concat(at)),
                    expr: self.expression(expr),
                    distinct,
                }
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => AggregateExpression::FunctionCall {
                name,
                expr: self.expression(expr),
                distinct,
            },
            count @ AggregateExpression::CountSolutions { .. } => count,
        }
    }

    fn expressions(&mut self, all: Vec<Expression>) -> Vec<Expression> {
        all.into_iter().map(|one| self.expression(one)).collect()
    }

    #[expect(clippy::boxed_local, reason = "the algebra boxes its parts")]
    fn sub(&mut self, expression: Box<Expression>) -> Box<Expression> {
        Box::new(self.expression(*expression))
    }

    fn expression(&mut self, expression: Expression) -> Expression {
        use Expression as E;
        match expression {
            plain @ (E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_)) => plain,
            E::Or(a, b) => E::Or(self.sub(a), self.sub(b)),
            E::And(a, b) => E::And(self.sub(a), self.sub(b)),
            E::Equal(a, b) => E::Equal(self.sub(a), self.sub(b)),
            E::SameTerm(a, b) => E::SameTerm(self.sub(a), self.sub(b)),
            E::Greater(a, b) => E::Greater(self.sub(a), self.sub(b)),
            E::GreaterOrEqual(a, b) => E::GreaterOrEqual(self.sub(a), self.sub(b)),
            E::Less(a, b) => E::Less(self.sub(a), self.sub(b)),
            E::LessOrEqual(a, b) => E::LessOrEqual(self.sub(a), self.sub(b)),
            E::Add(a, b) => E::Add(self.sub(a), self.sub(b)),
            E::Subtract(a, b) => E::Subtract(self.sub(a), self.sub(b)),
            E::Multiply(a, b) => E::Multiply(self.sub(a), self.sub(b)),
            E::Divide(a, b) => E::Divide(self.sub(a), self.sub(b)),
            E::UnaryPlus(a) => E::UnaryPlus(self.sub(a)),
            E::UnaryMinus(a) => E::UnaryMinus(self.sub(a)),
            E::Not(a) => E::Not(self.sub(a)),
            E::In(a, list) => E::In(self.sub(a), self.expressions(list)),
            E::Exists(pattern) => E::Exists(self.boxed(pattern)),
            E::If(a, b, c) => E::If(self.sub(a), self.sub(b), self.sub(c)),
            E::Coalesce(list) => E::Coalesce(self.expressions(list)),
            E::FunctionCall(function, given) => {
                let given = self.expressions(given);
                call(function, given)
            }
        }
    }
}

fn call(function: Function, given: Vec<Expression>) -> Expression {
    let bounded =
        |name: &str, given| Expression::FunctionCall(Function::Custom(texts::name(name)), given);
    match function {
        Function::Concat => joined(given),
        Function::Replace => bounded(texts::REPLACE, given),
        Function::EncodeForUri => bounded(texts::ENCODE, given),
        other => Expression::FunctionCall(other, given),
    }
}

/// All texts of a call are there at once, so each call gets two at most.
fn joined(given: Vec<Expression>) -> Expression {
    let half = |mut half: Vec<Expression>| match half.pop() {
        Some(only) if half.is_empty() => only,
        Some(last) => {
            half.push(last);
            joined(half)
        }
        None => joined(half),
    };
    let given = if given.len() > 2 {
        let mut left = given;
        let right = left.split_off(left.len() / 2);
        vec![half(left), half(right)]
    } else {
        given
    };
    Expression::FunctionCall(Function::Custom(texts::name(texts::CONCAT)), given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(query: &str) -> String {
        let parsed = spargebra::SparqlParser::new().parse_query(query).unwrap();
        rewrite(parsed).0.to_sse()
    }

    #[test]
    fn joins_stay_joins_and_all_that_collects_comes_past_a_step() {
        let plain = rewritten("SELECT * { ?a ?b ?c . ?d ?e ?f . VALUES ?a { 1 } } ORDER BY ?a");
        assert_eq!(plain.matches("(extend").count(), 1, "{plain}");
        assert_eq!(plain.matches("query:step").count(), 5, "{plain}");
        let nested = rewritten("SELECT ?a { { ?a ?b ?c } UNION {} OPTIONAL { ?a ?d ?e } }");
        assert_eq!(nested.matches("(extend").count(), 2, "{nested}");
    }

    #[test]
    fn functions_that_grow_are_replaced_everywhere() {
        let query = "SELECT (GROUP_CONCAT(CONCAT(?a, ?b, ?c); separator=',') AS ?x) \
                     { FILTER(EXISTS { FILTER(ENCODE_FOR_URI(?a) = 'x') }) \
                       BIND(CONCAT('a', 'b') AS ?z) BIND(REPLACE(?z, 'a', 'b') AS ?y) }";
        let sse = rewritten(query);
        for gone in ["(concat", "(replace", "(encode_for_uri", "(group_concat"] {
            assert!(!sse.contains(gone), "{gone}: {sse}");
        }
        assert_eq!(sse.matches("query:concat").count(), 3, "{sse}");
    }
}
