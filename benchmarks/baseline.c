/* The same loops in C, for comparison: EXP3, Tsallis-INF and HTINF on a table of losses, and EXP4 on
 * tables of losses and advice.
 *
 * Losses come as prefix sums in grid units, as the engine has them. The arithmetic is in the same
 * order as ours, so that without fused multiply-add both make the same decisions; a test checks
 * that. One level of weights only: meant for few arms.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define UNITS 1048576.0
#define MAX_IMPORTANCE 1e15

static inline uint64_t rotate(uint64_t word, int by) { return (word << by) | (word >> (64 - by)); }

static inline double uniform(uint64_t s[4]) {
  uint64_t word = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = rotate(s[3], 45);
  return (double)(word >> 11) * 0x1p-53;
}

static inline int pick(const double *weights, int arms, double target) {
  int i = 0;
  while (i < arms - 1 && target >= weights[i]) target -= weights[i++];
  while (i > 0 && weights[i] <= 0.0) i--;
  return i;
}

static inline double capped_inverse(double probability) {
  double inverse = 1.0 / probability;
  return inverse < MAX_IMPORTANCE ? inverse : MAX_IMPORTANCE;
}

static double sum_all(const double *weights, int arms) {
  double total = 0.0;
  for (int i = 0; i < arms; i++) total += weights[i];
  return total;
}

int64_t exp3(int arms, int64_t rounds, const int64_t *prefix, uint64_t *stream, double rate,
             double mixing) {
  double *losses = calloc(arms, sizeof *losses), *weights = malloc(arms * sizeof *weights);
  double total = arms, lowest = 0.5 * total;
  int64_t sum = 0;
  int age = 0;
  for (int i = 0; i < arms; i++) weights[i] = 1.0;
  for (int64_t t = 0; t < rounds; t++) {
    double u = uniform(stream);
    int arm = u < mixing ? (int)(u / mixing * arms)
                         : pick(weights, arms, (u - mixing) / (1.0 - mixing) * total);
    double importance = total * arms / ((1.0 - mixing) * arms * weights[arm] + mixing * total);
    importance = fmin(importance, MAX_IMPORTANCE);
    int64_t loss = prefix[(t + 1) * arms + arm] - prefix[t * arms + arm];
    sum += loss;
    losses[arm] += (double)loss * (1.0 / UNITS) * importance;
    double weight = exp(-rate * losses[arm]);
    total += weight - weights[arm];
    weights[arm] = weight;
    if (!(lowest <= total && total <= 1e9) || ++age >= 256) {
      total = sum_all(weights, arms);
      if (!(total > 1e-9 && total < 1e9)) {
        double smallest = losses[0];
        for (int i = 1; i < arms; i++) smallest = fmin(smallest, losses[i]);
        for (int i = 0; i < arms; i++) {
          losses[i] -= smallest;
          weights[i] = exp(-rate * losses[i]);
        }
        total = sum_all(weights, arms);
      }
      lowest = 0.5 * total;
      age = 0;
    }
  }
  free(losses);
  free(weights);
  return sum;
}

static inline void centre(double *losses, int arms) {
  double smallest = losses[0];
  for (int i = 1; i < arms; i++) smallest = fmin(smallest, losses[i]);
  for (int i = 0; i < arms; i++) losses[i] -= smallest;
}

static inline double solve(const double *losses, double *chances, int arms, double c, double y) {
  double total = 1.0;
  y = fmin(fmax(y, c), c * sqrt(arms));
  for (int k = 0; k < 100; k++) {
    double cubes = 0.0;
    total = 0.0;
    for (int i = 0; i < arms; i++) {
      double ratio = c / (losses[i] + y), square = ratio * ratio;
      chances[i] = square;
      total += square;
      cubes += square * ratio;
    }
    if (fabs(total - 1.0) <= 1e-9) break;
    y = fmax(y + c * total * (sqrt(total) - 1.0) / cubes, c);
  }
  for (int i = 0; i < arms; i++) chances[i] *= 1.0 / total;
  return y;
}

int64_t tsallis_inf(int arms, int64_t rounds, const int64_t *prefix, uint64_t *stream) {
  double *losses = calloc(arms, sizeof *losses), *chances = malloc(arms * sizeof *chances);
  double root = 0.0;
  int64_t sum = 0;
  for (int64_t t = 1; t <= rounds; t++) {
    centre(losses, arms);
    root = solve(losses, chances, arms, 0.5 * sqrt((double)t), root);
    int arm = pick(chances, arms, uniform(stream));
    int64_t loss = prefix[t * arms + arm] - prefix[(t - 1) * arms + arm];
    double baseline = 0.0;
    sum += loss;
    if (t >= 16) {
      double rare = 4.0 / (double)t;
      if (chances[arm] >= rare) baseline = 0.5;
      for (int i = 0; i < arms; i++)
        if (chances[i] < rare) losses[i] -= 0.5;
    }
    losses[arm] += ((double)loss * (1.0 / UNITS) - baseline) * capped_inverse(chances[arm]);
  }
  free(losses);
  free(chances);
  return sum;
}

int64_t htinf(int arms, int64_t rounds, const int64_t *prefix, uint64_t *stream, double sigma) {
  double *losses = calloc(arms, sizeof *losses), *chances = malloc(arms * sizeof *chances);
  double root = 0.0, skip = 1.0 - pow(2.0, -1.0 / 3.0);
  int64_t sum = 0;
  for (int64_t t = 1; t <= rounds; t++) {
    double c = sigma * sqrt((double)t);
    centre(losses, arms);
    root = solve(losses, chances, arms, c, root);
    int arm = pick(chances, arms, uniform(stream));
    double importance = capped_inverse(chances[arm]);
    int64_t units = prefix[t * arms + arm] - prefix[(t - 1) * arms + arm];
    double loss = (double)units * (1.0 / UNITS);
    sum += units;
    if (fabs(loss) <= skip * c * sqrt(1.0 / importance)) losses[arm] += loss * importance;
  }
  free(losses);
  free(chances);
  return sum;
}

/* EXP4. Sums go in eight lanes, as ours do. */

#define LANES 8

static inline double add_lanes(const double a[LANES]) {
  return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

static inline double sum_lanes(const double *weights, int size) {
  double a[LANES] = {0.0};
  int whole = size - size % LANES;
  for (int j = 0; j < whole; j += LANES)
    for (int k = 0; k < LANES; k++) a[k] += weights[j + k];
  for (int j = whole; j < size; j++) a[0] += weights[j];
  return add_lanes(a);
}

static inline int pick_expert(const double *weights, int size, double target) {
  int low = 0;
  for (; low + LANES < size; low += LANES) {
    double block = add_lanes(weights + low);
    if (target < block) return low + pick(weights + low, LANES, target);
    target -= block;
  }
  return low + pick(weights + low, size - low, target);
}

static void rebuild(double *losses, double *weights, int size, double rate) {
  double smallest = losses[0];
  for (int j = 1; j < size; j++) smallest = fmin(smallest, losses[j]);
  for (int j = 0; j < size; j++) {
    losses[j] -= smallest;
    double weight = exp(-rate * losses[j]);
    weights[j] = weight > 1e-280 ? weight : 0.0;
  }
}

/* votes: (rounds, experts) bytes, or NULL; shares: (rounds, arms, experts), or NULL. */
int64_t exp4(int arms, int experts, int64_t rounds, const int64_t *table, const uint8_t *votes,
             const double *shares, uint64_t *stream, double rate) {
  double *losses = calloc(experts, sizeof *losses), *weights = malloc(experts * sizeof *weights);
  double total = experts;
  int64_t sum = 0;
  int whole = experts - experts % LANES;
  for (int j = 0; j < experts; j++) weights[j] = 1.0;
  for (int64_t t = 0; t < rounds; t++) {
    int expert = pick_expert(weights, experts, uniform(stream) * total), arm = 0;
    double a[LANES] = {0.0}, target = uniform(stream);
    const uint8_t *said = votes + t * experts;
    const double *share = shares + t * arms * experts;
    if (votes) {
      arm = said[expert];
      for (int j = 0; j < whole; j += LANES)
        for (int k = 0; k < LANES; k++) a[k] += said[j + k] == arm ? weights[j + k] : 0.0;
      for (int j = whole; j < experts; j++) a[0] += said[j] == arm ? weights[j] : 0.0;
    } else {
      while (arm < arms - 1 && target >= share[arm * experts + expert])
        target -= share[arm++ * experts + expert];
      share += arm * experts;
      for (int j = 0; j < whole; j += LANES)
        for (int k = 0; k < LANES; k++) a[k] += weights[j + k] * share[j + k];
      for (int j = whole; j < experts; j++) a[0] += weights[j] * share[j];
    }
    double importance = capped_inverse(add_lanes(a) / total);
    int64_t loss = table[t * arms + arm];
    sum += loss;
    double estimate = (double)loss * (1.0 / UNITS) * importance;
    if (votes) {
      double factor = exp(-rate * estimate);
      for (int j = 0; j < experts; j++) {
        losses[j] += said[j] == arm ? estimate : 0.0;
        double weight = weights[j] * (said[j] == arm ? factor : 1.0);
        weights[j] = weight > 1e-280 ? weight : 0.0;
      }
    } else {
      for (int j = 0; j < experts; j++) {
        losses[j] += estimate * share[j];
        double weight = weights[j] * exp(-rate * estimate * share[j]);
        weights[j] = weight > 1e-280 ? weight : 0.0;
      }
    }
    total = sum_lanes(weights, experts);
    if (!(total > 1e-9 && total < 1e9)) {
      rebuild(losses, weights, experts, rate);
      total = sum_lanes(weights, experts);
    }
  }
  free(losses);
  free(weights);
  return sum;
}
