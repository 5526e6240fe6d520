/**
 * Returns 1 − Var(targets − values) / Var(targets), which is 1 for a critic without errors and 0 for one that predicts only
 * the mean.
 */
export const explainedVariance = (values: Float32Array, targets: Float32Array): number => {
  const n = values.length
  let sum = 0
  let sumOfSquares = 0
  let errorSum = 0
  let errorSquares = 0
  for (let index = 0; index < n; index++) {
    const target = targets[index]
    const error = target - values[index]
    sum += target
    sumOfSquares += target * target
    errorSum += error
    errorSquares += error * error
  }
  const variance = sumOfSquares / n - (sum / n) ** 2
  return variance > 0 ? 1 - (errorSquares / n - (errorSum / n) ** 2) / variance : 0
}
