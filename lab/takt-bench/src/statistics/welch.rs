//! Welch's t-test and effect size.
//!
//! With 10,000 samples per side, a difference of a hundredth of a standard deviation has p < 0.5,
//! and one of a tenth has p < 1e-11. A small p only says that the means are not exactly equal,
//! which no two systems are. The interval of the difference says how far apart the means are; the
//! effect size relates that to the spread. By Cohen's convention a g of 0.2 is small, 0.5 medium,
//! 0.8 large.

use super::Interval;
use super::moments::Moments;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::gamma::ln_gamma;

/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Test of the difference of two means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Welch {
    /// First mean minus second mean.
    pub difference: f64,
    /// 95 % confidence interval of the difference.
    pub interval: Interval,
    /// Test statistic.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite.
    pub df: f64,
    /// Two-sided probability of such a t if the means are equal; 0 below the smallest double.
    pub p: f64,
    /// Hedges' g: the difference in pooled standard deviations, corrected for small counts.
    pub g: f64,
    /// 95 % confidence interval of g, by the normal approximation of Hedges and Olkin (1985).
    pub g_interval: Interval,
}

/// Tests whether two means differ. `None` if one side has fewer than two values, or no side has any
/// variance.
#[must_use]
pub fn welch(first: &Moments, second: &Moments) -> Option<Welch> {
    let (n1, n2) = (first.count, second.count);
    if n1 < 2.0 || n2 < 2.0 {
        return None;
    }
    let (error1, error2) = (first.variance / n1, second.variance / n2);
    let error = (error1 + error2).sqrt();
    let df = (error1 + error2).powi(2) / (error1.powi(2) / (n1 - 1.0) + error2.powi(2) / (n2 - 1.0));
    let difference = first.mean - second.mean;
    let t = difference / error;
    if !t.is_finite() || !df.is_finite() {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, df).ok()?;
    let half = distribution.inverse_cdf(0.975) * error;
    let g = hedges(first, second);
    let half_g = Z * ((n1 + n2) / (n1 * n2) + g * g / (2.0 * (n1 + n2))).sqrt();
    Some(Welch {
        difference,
        interval: Interval { low: difference - half, high: difference + half },
        t,
        df,
        p: (2.0 * distribution.cdf(-t.abs())).clamp(0.0, 1.0),
        g,
        g_interval: Interval { low: g - half_g, high: g + half_g },
    })
}

/// Returns Cohen's d with Hedges' exact correction.
fn hedges(first: &Moments, second: &Moments) -> f64 {
    let df = first.count + second.count - 2.0;
    let squares = (first.count - 1.0) * first.variance + (second.count - 1.0) * second.variance;
    let d = (first.mean - second.mean) / (squares / df).sqrt();
    d * (ln_gamma(df / 2.0) - ln_gamma((df - 1.0) / 2.0) - (df / 2.0).sqrt().ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mean: f64, variance: f64, count: f64) -> Moments {
        Moments { count, mean, variance }
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-9 * expected.abs().max(1e-3)
    }

    /// Reference values: `scipy.stats.ttest_ind_from_stats(..., equal_var=False)` and
    /// `scipy.stats.t.ppf` of SciPy 1.17.1; g by `scipy.special.gammaln` from the formula of Hedges
    /// (1981).
    #[test]
    fn tests_agree_with_scipy() {
        let cases = [
            (
                moments(20.819999999999997, 7.867428571428571, 15.0),
                moments(23.686666666666664, 6.996952380952382, 15.0),
                [-2.879714362876703, 27.904304538301975, 0.00756139750239832, -4.906107774632728, -0.8272255587006061],
                [-1.0230605066158747, -1.784116179098452, -0.26200483413329734],
            ),
            (
                moments(2.525, 1.6358333333333333, 4.0),
                moments(421.3666666666666, 5757.823333333332, 3.0),
                [-9.559497721932658, 2.0008523488562844, 0.010751561149784504, -607.2819819899806, -230.40135134335262],
                [-7.336085622881945, -11.460162397827208, -3.2120088479366826],
            ),
            (
                moments(147.0, 400.0, 10_000.0),
                moments(146.5, 900.0, 10_000.0),
                [1.3867504905630728, 17420.9381443299, 0.1655356026413568, -0.2067241658622161, 1.206724165862216],
                [0.019610877994129958, -0.008107864734794856, 0.04732962072305477],
            ),
            (
                moments(100.0, 1.0, 2.0),
                moments(101.0, 4.0, 2.0),
                [-0.6324555320336759, 1.4705882352941178, 0.6110947325534121, -10.784268817874386, 8.784268817874386],
                [-0.35682482323055426, -2.3323241364913483, 1.6186744900302397],
            ),
        ];
        for (first, second, [t, df, p, low, high], [g, g_low, g_high]) in cases {
            let test = welch(&first, &second).unwrap();
            let pairs = [
                (test.t, t),
                (test.df, df),
                (test.p, p),
                (test.interval.low, low),
                (test.interval.high, high),
                (test.g, g),
                (test.g_interval.low, g_low),
                (test.g_interval.high, g_high),
            ];
            for (value, expected) in pairs {
                assert!(is_near(value, expected), "{value} is not {expected}: {test:?}");
            }
        }
    }

    /// Tables 1 to 3 of Zak (2017): mean and deviation of 10,000 samples of Fast RTPS and of
    /// OpenDDS, best effort, with t and df as published.
    #[test]
    fn tests_agree_with_published_tables() {
        let published = [
            ([147.24, 28.46, 367.18, 750.83], -29.271, 10_028.0),
            ([141.76, 23.29, 325.69, 29.29], -490.67, 19_069.0),
            ([148.82, 28.08, 319.18, 17.95], -511.13, 17_000.0),
            ([156.00, 46.15, 351.89, 125.48], -146.53, 12_656.0),
            ([221.26, 45.88, 348.42, 61.37], -165.94, 18_516.0),
        ];
        for ([mean1, deviation1, mean2, deviation2], t, df) in published {
            let side = |mean, deviation: f64| moments(mean, deviation.powi(2), 10_000.0);
            let test = welch(&side(mean1, deviation1), &side(mean2, deviation2)).unwrap();
            // The published tables agree with each other to 0.3 % at best.
            assert!((test.t / t - 1.0).abs() < 3e-3 && (test.df / df - 1.0).abs() < 3e-3, "{t}, {df}: {test:?}");
            assert!(test.p < 2.2e-16);
        }
    }

    #[test]
    fn many_samples_make_any_difference_significant_and_leave_the_effect_small() {
        let test = welch(&moments(100.0, 100.0, 1e6), &moments(100.1, 100.0, 1e6)).unwrap();
        assert!(test.p < 1e-11 && test.g.abs() < 0.011, "{test:?}");
    }

    #[test]
    fn means_without_variance_or_with_one_value_are_not_tested() {
        let constant = moments(1.0, 0.0, 5.0);
        assert_eq!(welch(&constant, &moments(2.0, 0.0, 5.0)), None);
        assert_eq!(welch(&moments(1.0, 0.0, 1.0), &moments(2.0, 1.0, 5.0)), None);
        assert_eq!(welch(&moments(f64::NAN, 1.0, 5.0), &moments(2.0, 1.0, 5.0)), None);
        assert!(welch(&constant, &moments(2.0, 1.0, 5.0)).is_some());
    }
}
