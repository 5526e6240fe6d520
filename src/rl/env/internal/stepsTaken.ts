/**
 * The number of batch steps in this thread so far. While it grows, the command line does not report that an env hangs.
 */
export const stepsTaken = new Float64Array(1)
