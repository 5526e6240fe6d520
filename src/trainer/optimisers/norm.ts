/** Computes the Euclidean norm of numbers. The sum of their squares goes from the first to the last. */
export const normOf = (numbers: ArrayLike<number>): number => {
  let squares = 0
  for (let at = 0; at < numbers.length; at++) squares += numbers[at] * numbers[at]
  return Math.sqrt(squares)
}
