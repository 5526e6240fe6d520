/** The number of batch steps in this thread so far. While it grows, the command line does not report a hanging env. */
export const stepsTaken = new Float64Array(1)
