//! The numbers that bound what an expression may cost.

/// What one evaluation may cost before it is cut off.
///
/// Source: `PerCallLimit` in k8s.io/apiserver/pkg/apis/cel/config.go.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// What all evaluations on one object may cost together: all rules of a custom resource, or all expressions of one policy
/// binding.
///
/// Source: `RuntimeCELCostBudget` in k8s.io/apiserver/pkg/apis/cel/config.go.
pub const RUNTIME_COST_BUDGET: u64 = 10_000_000;

/// What all match conditions of one webhook or of one policy may cost together on one object.
///
/// Source: `RuntimeCELCostBudgetMatchConditions` in k8s.io/apiserver/pkg/apis/cel/config.go.
pub const MATCH_CONDITIONS_COST_BUDGET: u64 = 2_500_000;

/// The largest request that the estimates reckon with: what has no bound of its own cannot be larger than this.
///
/// Source: `MaxRequestSizeBytes` in k8s.io/apiserver/pkg/apis/cel/config.go.
pub const MAX_REQUEST_SIZE_BYTES: u64 = 3 * 1024 * 1024;

/// The longest message that a `messageExpression` may make.
///
/// Source: `MaxEvaluatedMessageExpressionSizeBytes` in k8s.io/apiserver/pkg/apis/cel/config.go.
pub const MAX_MESSAGE_EXPRESSION_BYTES: usize = 5 * 1024;

/// What one rule of a CustomResourceDefinition may be estimated to cost, times the number of places where it may apply.
///
/// Source: `StaticEstimatedCostLimit` in k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
pub const ESTIMATED_RULE_COST_LIMIT: u64 = 10_000_000;

/// What all rules of one version of a CustomResourceDefinition may be estimated to cost together.
///
/// Source: `StaticEstimatedCRDCostLimit` in k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
pub const ESTIMATED_CRD_COST_LIMIT: u64 = 100_000_000;

/// The longest expression that is parsed, in code points.
///
/// Source: `defaultExpressionSizeCodePointLimit`, cel-go's parser/options.go.
pub const MAX_EXPRESSION_CODE_POINTS: usize = 100_000;
