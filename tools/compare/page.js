/* The charts of a page of `clebsch compare`, from the JSON in it.  ECMAScript 5, without libraries;
   everything is made as text, so that tests can read it without a browser. */
var WIDTH = 400, ROW = 16, PLOT = 230;

function charts(c) {
  'use strict';

  // ---- numbers and texts

  function esc(s) {
    var names = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;'};
    return String(s).replace(/[&<>"']/g, function(x) { return names[x]; });
  }

  function known(x) { return typeof x === 'number'; }

  function log10(x) { return Math.log(x) / Math.LN10; }

  function figures(x, n) { // n significant digits
    if (x > 0 && (x < 1e-4 || x >= 1e7)) return x.toExponential(n - 1);
    return x.toFixed(x > 0 ? Math.max(0, n - 1 - Math.floor(log10(x) + 1e-12)) : 0);
  }

  function scaled(x, n, unit) { // '1.20 TB/s'
    var k = x > 0 ? Math.floor(log10(x) / 3 + 1e-9) : 0;
    k = Math.max(-4, Math.min(6, !unit && x >= 1e-3 && x < 1e4 ? 0 : k));
    var prefix = ['p', 'n', '\u00b5', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'][k + 4];
    return figures(x / Math.pow(1000, k), n) + (prefix || unit ? ' ' : '') + prefix + unit;
  }

  function workOf(line) {
    return line.problem + (line.graph ? ', ' + line.graph : '') +
      (line.options ? ', ' + line.options : '');
  }

  function groupTitle(g) { return g.op + ', ' + g.pass + ', ' + g.dtype; }

  // ---- axes: values [low, high] are at positions [from, to]

  function step125(x, up) { // the nearest 1, 2 or 5 times a power of ten
    var power = Math.pow(10, Math.floor(log10(x) + 1e-9)), ratio = x / power, i = 0,
        steps = [1, 2, 5, 10];
    while (i < 3 && (up ? steps[i] < ratio * (1 - 1e-9) : steps[i + 1] <= ratio * (1 + 1e-9))) i++;
    return power * steps[i];
  }

  function axis(low, high, from, to, linear) {
    if (linear) {
      if (!(high > low)) low -= 1, high += 1;
    } else {
      low = step125(low, false), high = step125(high, true);
      if (!(high > low * 1.5)) low = step125(low / 2, false), high = step125(high * 2, true);
      low = log10(low), high = log10(high);
    }
    return {
      low: low, high: high, from: from, to: to, linear: linear,
      at: function(x) {
        return from + (to - from) * ((linear ? x : log10(x)) - low) / (high - low);
      }
    };
  }

  function ticks(a, max) {
    var out = [], k, i, at, step, stride;
    if (a.linear) {
      step = Math.max(1, step125((a.high - a.low) / max, true));
      for (k = Math.ceil(a.low / step - 1e-9); k * step <= a.high + 1e-9; k++) out.push(k * step);
      return out;
    }
    for (stride = 0;; stride++, out = []) { // 1, 2 and 5 of every decade; else every stride-th one
      for (k = Math.floor(a.low + 1e-9); k <= a.high + 1e-9; k++)
        for (i = 0; i < (stride ? 1 : 3); i++) {
          at = k + log10([1, 2, 5][i]);
          if ((!stride || k % stride === 0) && at > a.low - 1e-9 && at < a.high + 1e-9)
            out.push(Math.pow(10, k) * [1, 2, 5][i]);
        }
      if (out.length <= max) return out;
    }
  }

  // ---- elements

  function svg(height, title, body) {
    return '<svg viewBox="0 0 ' + WIDTH + ' ' + height + '" role="img">' +
      (title ? '<title>' + esc(title) + '</title>' : '') + '\n' + body + '</svg>\n';
  }

  function text(x, y, classes, anchor, s) {
    return '<text x="' + x.toFixed(1) + '" y="' + y.toFixed(1) + '" class="' + classes +
      '" text-anchor="' + anchor + '">' + esc(s) + '</text>\n';
  }

  function stroke(classes, x0, y0, x1, y1) {
    return '<path class="' + classes + '" d="M' + x0.toFixed(1) + ' ' + y0.toFixed(1) + 'L' +
      x1.toFixed(1) + ' ' + y1.toFixed(1) + '"/>\n';
  }

  var shapes = [ // centred on 0, with roughly the same area
    'm-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z', 'm-4 -4h8v8h-8z', 'm0 -5.4l5 8.8h-10z',
    'm0 -5.6l5.6 5.6l-5.6 5.6l-5.6 -5.6z', 'm0 5.4l5 -8.8h-10z',
    'm-1.8 -5.2h3.6v3.4h3.4v3.6h-3.4v3.4h-3.6v-3.4h-3.4v-3.6h3.4z'
  ];

  function mark(series, kind, x, y, title) { // kind: mark, 'mark hollow' (a bound), cross, small
    var shape = kind === 'cross' ? 'm-5 -5l10 10m0 -10l-10 10'
      : kind === 'small' ? 'm-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z' : shapes[series % 6];
    return '<path class="' + kind + ' c' + series % 8 + '" d="M' + x.toFixed(1) + ' ' +
      y.toFixed(1) + shape + '"><title>' + esc(title) + '</title></path>\n';
  }

  function kindOf(cell) {
    return cell.check === 'incorrect' ? 'cross' : cell.bound ? 'mark hollow' : 'mark';
  }

  function remark(cell) {
    return cell.check === 'incorrect' ? ', INCORRECT'
      : cell.bound ? ', a bound and not a measurement' : '';
  }

  function figure(title, more, series, body) { // series: [number, name] of each
    return '<figure><figcaption><strong>' + esc(title) + '</strong>' +
      (more ? '<br/>' + esc(more) : '') + '</figcaption>\n<ul class="legend">' +
      series.map(function(s) {
        return '<li><svg viewBox="0 0 14 14" class="key">' + mark(s[0], 'mark', 7, 7, s[1]) +
          '</svg>' + esc(s[1]) + '</li>';
      }).join('') + '</ul>\n' + body + '</figure>\n';
  }

  function section(title, words, kind, figures) {
    return figures ? '<section>\n<h2>' + title + '</h2>\n<p>' + words + '</p>\n' +
      (kind ? '<div class="' + kind + '">\n' + figures + '</div>\n' : figures) + '</section>\n' : '';
  }

  function devices(use) { // legend of those that use() is true of
    var all = [];
    c.devices.forEach(function(d, i) { if (use(d, i)) all.push([i, d.label]); });
    return all;
  }

  // ---- rows of marks over a common axis

  function rowsOf(x, n, body) {
    return svg(n * ROW, '', ticks(x, 5).map(function(t) {
      return stroke('grid', x.at(t), 0, x.at(t), n * ROW);
    }).join('') + body);
  }

  function axisBelow(x, title, unit) {
    return svg(40, title, stroke('axis', x.from, 0, x.to, 0) + ticks(x, 5).map(function(t) {
      return text(x.at(t), 16, 'tick', 'middle', scaled(t, 1, unit));
    }).join('') + text((x.from + x.to) / 2, 34, 'label', 'middle', title));
  }

  function label(s) { return '<div class="label">' + esc(s) + '</div>\n'; }

  // ---- speeds against the baseline

  function isCompared(d, i) { return i !== c.baseline && c.means[i] !== null; }

  function speedRow(g, i, x, y) {
    var group = g < 0 ? c : c.groups[g], m = group.means[i], name = c.devices[i].label,
        bound = m.upper_bound || m.lower_bound, out = stroke('range', x.at(m.low), y, x.at(m.high), y),
        sign = m.upper_bound && m.lower_bound ? '~' : m.upper_bound ? '\u2264'
          : m.lower_bound ? '\u2265' : '',
        number = sign + figures(m.value, 3);
    c.lines.forEach(function(line) {
      var cell = line.cells[i];
      if (line.group === g && cell && known(cell.speed) &&
          (cell.upper_bound || cell.lower_bound) === bound)
        out += mark(i, 'small', x.at(cell.speed), y, name + ': ' + workOf(line) + ', ' + line.rows +
          ' rows: ' + figures(cell.speed, 3) + (cell.per_row ? ' by the row' : ''));
    });
    return out + mark(i, bound ? 'mark hollow' : 'mark', x.at(m.value), y,
      name + ': geometric mean of ' + m.n + ': ' + number) +
      text(WIDTH - 4, y + 4, 'value', 'end', number);
  }

  function speedFigure(op, x) {
    var body = '';
    function row(g, means, title) {
      var n = 0, rows = '';
      c.devices.forEach(function(d, i) {
        if (isCompared(d, i) && means[i]) rows += speedRow(g, i, x, ROW * (n++ + 0.5));
      });
      if (n)
        body += label(title) +
          rowsOf(x, n, stroke('one', x.at(1), 0, x.at(1), n * ROW) + rows);
    }
    if (op === null) row(-1, c.means, 'every op, pass and type');
    else
      c.groups.forEach(function(g, i) {
        if (g.op === op) row(i, g.means, g.pass + ', ' + g.dtype);
      });
    return body && figure(op === null ? 'All together' : op,
      'against ' + c.devices[c.baseline].label, devices(isCompared),
      body + axisBelow(x, 'time of the baseline / time of the device', ''));
  }

  function ops() {
    var all = [];
    c.groups.forEach(function(g) { if (all.indexOf(g.op) < 0) all.push(g.op); });
    return all;
  }

  function speeds() {
    var low = 1, high = 1, any = false;
    [c].concat(c.groups).forEach(function(g) {
      c.devices.forEach(function(d, i) {
        if (!isCompared(d, i) || !g.means[i]) return;
        any = true;
        low = Math.min(low, g.means[i].low), high = Math.max(high, g.means[i].high);
      });
    });
    if (!any) return '';
    var x = axis(low, high, 26, WIDTH - 66);
    return section('Speed of each device', 'Large marks: geometric means; small ones: each ' +
      'problem; hollow: bounds. Further right is faster.', 'flow',
      [null].concat(ops()).map(function(op) { return speedFigure(op, x); }).join(''));
  }

  // ---- time of every problem

  function isLargest(line) { // of lines that differ in rows alone
    return c.lines.every(function(l) { return l.block !== line.block || l.rows <= line.rows; });
  }

  function timeFor(line, cell) { // for the line's number of rows
    return cell && known(cell.seconds) ? cell.seconds * line.rows / cell.rows : null;
  }

  function timeRow(line, i, x, y) {
    var cell = line.cells[i], t = timeFor(line, cell), other = cell.rows !== line.rows,
        wrong = cell.check === 'incorrect', near = cell.fraction, out = '', title, percent;
    if (t === null) return text(WIDTH - 4, y + 4, 'value faint', 'end', 'failed');
    if (near > 0 && near < 1)
      out = stroke('bar c' + i % 8, Math.max(x.from, x.at(t * near)), y, x.at(t), y);
    percent = known(near) ? ', ' + (100 * near).toFixed(0) + ' %' : '';
    title = c.devices[i].label + ': ' + workOf(line) + ', ' + groupTitle(c.groups[line.group]) +
      ': ' + scaled(t, 3, 's') + ' for ' + line.rows + ' rows' +
      (other ? ', from ' + cell.rows + ' rows' : '') +
      (remark(cell) || (percent && percent + ' of the peak of ' + cell.of));
    return out + mark(i, kindOf(cell), x.at(t), y, title) +
      text(WIDTH - 4, y + 4, wrong ? 'value wrong' : 'value', 'end', wrong ? 'incorrect'
        : (cell.bound ? '\u2265 ' : other ? '~ ' : '') + scaled(t, 3, 's') + percent);
  }

  function timeFigure(group, g) {
    var low = Infinity, high = 0, body = '', x,
        lines = c.lines.filter(function(l) { return l.group === g && isLargest(l); });
    lines.forEach(function(line) {
      line.cells.forEach(function(cell) {
        var t = timeFor(line, cell);
        if (t === null) return;
        high = Math.max(high, t);
        low = Math.min(low, cell.fraction > 0.01 && cell.fraction < 1 ? t * cell.fraction : t);
      });
    });
    if (!(high > 0)) return '';
    x = axis(low, high, 26, WIDTH - 132);
    lines.forEach(function(line) {
      var n = 0, rows = '';
      line.cells.forEach(function(cell, i) {
        if (cell && !(cell.bound && !known(cell.seconds)))
          rows += timeRow(line, i, x, ROW * (n++ + 0.5));
      });
      if (n) body += label(workOf(line) + ', ' + line.rows + ' rows') + rowsOf(x, n, rows);
    });
    return figure(groupTitle(group), '', devices(function(d) { return d.times > 0; }),
      body + axisBelow(x, 'time of a launch', 's'));
  }

  function times() {
    return section('Time of every problem', 'A mark is the measured time; the bar to its left ' +
      'begins where the device would be at its own peak, copy or multiply-adds, whichever is ' +
      'closer: no bar, no distance; %: how near. Hollow: a bound. ~: scaled from another number ' +
      'of rows. Of problems with several numbers of rows, the largest.', 'charts',
      c.groups.map(timeFigure).join(''));
  }

  // ---- charts with two axes

  function plot(x, y, titles, units, body) { // titles, units: of x and y
    var mid = (x.from + x.to) / 2;
    return svg(y.from + 46, titles[0], ticks(y, 8).map(function(t) {
      return stroke('grid', x.from, y.at(t), x.to, y.at(t)) +
        text(x.from - 5, y.at(t) + 4, 'tick', 'end', scaled(t, 1, units[1]));
    }).join('') + ticks(x, 7).map(function(t) {
      return stroke('grid', x.at(t), y.from, x.at(t), y.to) +
        text(x.at(t), y.from + 18, 'tick', 'middle', scaled(t, 1, units[0]));
    }).join('') + stroke('axis', x.from, y.from, x.to, y.from) +
      stroke('axis', x.from, y.from, x.from, y.to) +
      text(mid, y.from + 36, 'label', 'middle', titles[0]) +
      text(4, y.to - 10, 'label', 'start', titles[1]) + body);
  }

  function roofline(d, i) {
    var top = d.peaks, names = ops(), points = [], low = Infinity, high = 0, x, y, body = '', start;
    c.lines.forEach(function(line) {
      var cell = line.cells[i];
      if (cell && cell.flops > 0 && cell.bytes > 0 && known(cell.seconds)) points.push([line, cell]);
    });
    if (!top || !points.length) return '';
    function range(of, least) {
      return points.map(of).concat(least).reduce(function(r, v) {
        return [Math.min(r[0], v), Math.max(r[1], v)];
      }, [Infinity, 0]);
    }
    function intensity(p) { return p[1].flops / p[1].bytes; }
    function rate(p) { return p[1].flops / p[1].seconds; }
    low = range(intensity, [2 * top.f32 / top.copy]);
    high = range(rate, [2 * Math.max(top.f32, top.f64 || 0)]);
    x = axis(low[0], low[1], 62, WIDTH - 12);
    y = axis(high[0], 2 * high[1], PLOT + 28, 28);
    start = Math.max(Math.pow(10, x.low), Math.pow(10, y.low) / top.copy);
    function roof(peak) {
      var classes = top.published ? 'roof dashed' : 'roof',
          ridge = Math.min(Math.pow(10, x.high), peak / top.copy),
          from = Math.min(start, ridge);
      return stroke(classes, x.at(from), y.at(from * top.copy), x.at(ridge),
        y.at(ridge * top.copy)) + stroke(classes, x.at(ridge), y.at(peak), x.to, y.at(peak));
    }
    ['f32', 'f64'].forEach(function(name) {
      var other = top[name === 'f32' ? 'f64' : 'f32'];
      if (known(top[name]))
        body += roof(top[name]) + text(x.to - 2, y.at(top[name]) + (top[name] < other ||
          (top[name] === other && name === 'f64') ? 16 : -6), 'label', 'end',
          name + ' ' + scaled(top[name], 3, 'flop/s'));
    });
    points.forEach(function(p) {
      var line = p[0], cell = p[1], group = c.groups[line.group];
      body += mark(names.indexOf(group.op), kindOf(cell), x.at(intensity(p)), y.at(rate(p)),
        group.op + ' ' + workOf(line) + ', ' + group.pass + ' ' + group.dtype + ', ' + cell.rows +
        ' rows: ' + scaled(cell.seconds, 3, 's') + ', ' + scaled(rate(p), 3, 'flop/s') +
        (remark(cell) || (known(cell.fraction)
          ? ', ' + (100 * cell.fraction).toFixed(0) + ' % of the peak of ' + cell.of : '')));
    });
    return figure(d.label, (d.runs ? d.description : d.sheet || 'compiles only') + ': copy ' +
      scaled(top.copy, 3, 'B/s'), names.map(function(n, k) { return [k, n]; }),
      plot(x, y, ['operations per byte (flop/B)', 'operations per second (flop/s)'], ['', ''], body));
  }

  function rooflines() {
    return section('Rooflines', 'Each result under the peaks of its device: solid lines are ' +
      'measured in the same run, dashed lines are only published. Hollow: a bound; a cross: ' +
      'incorrect. Points above the slope work in caches.', 'charts',
      c.devices.map(roofline).join(''));
  }

  // points: [x, line] of ascending x; yOf: of a cell
  function curves(title, more, points, titles, units, linear, yOf) {
    var low = Infinity, high = 0, last = points[points.length - 1][0], first = points[0][0], x, y;
    function value(p, i) {
      var cell = p[1].cells[i];
      return cell && known(cell.seconds) ? yOf(cell) : null;
    }
    var shown = devices(function(d, i) {
      return points.filter(function(p) {
        var v = value(p, i);
        if (v !== null) low = Math.min(low, v), high = Math.max(high, v);
        return v !== null;
      }).length > 0;
    });
    if (!shown.length) return '';
    x = linear ? axis(first - 0.2, last + 0.2, 62, WIDTH - 12, true)
      : axis(first, last, 62, WIDTH - 16);
    y = axis(low, high, PLOT + 28, 28);
    return figure(title, more, shown, plot(x, y, titles, units, shown.map(function(s) {
      var mine = points.filter(function(p) { return value(p, s[0]) !== null; }),
          bound = mine.some(function(p) { return p[1].cells[s[0]].bound; });
      return '<path class="curve c' + s[0] % 8 + (bound ? ' dashed' : '') + '" d="M' +
        mine.map(function(p) {
          return x.at(p[0]).toFixed(1) + ' ' + y.at(value(p, s[0])).toFixed(1);
        }).join('L') + '"/>\n' + mine.map(function(p) {
          var cell = p[1].cells[s[0]], v = value(p, s[0]);
          return mark(s[0], kindOf(cell), x.at(p[0]), y.at(v), s[1] + ': ' + p[1].problem + ', ' +
            cell.rows + ' rows: ' + scaled(v, 3, units[1]) + remark(cell));
        }).join('');
    }).join('')));
  }

  function scalingWithRows() {
    var seen = {}, figures = c.groups.map(function(g, k) {
      var all = '';
      c.lines.forEach(function(line) {
        if (line.group !== k || seen[line.block]) return;
        seen[line.block] = true;
        var points = c.lines.filter(function(l) { return l.block === line.block; })
          .map(function(l) { return [l.rows, l]; }).sort(function(a, b) { return a[0] - b[0]; });
        if (points.length >= 3)
          all += curves(groupTitle(g), workOf(line), points,
            ['rows of a launch', 'rows per second'], ['', ''], false,
            function(cell) { return cell.rows / cell.seconds; });
      });
      return all && '<details open><summary>' + esc(groupTitle(g)) +
        '</summary>\n<div class="charts">\n' + all + '</div></details>\n';
    }).join('');
    return section('Scaling with rows', 'Few rows show the cost of a launch, many the ceiling. ' +
      'Higher is faster.', '', figures);
  }

  function scalingWithL() { // 'flashtp-l3' is 3 of 'flashtp-l', 'lmax=4' 4 of 'lmax='
    var families = {}, order = [];
    c.lines.filter(isLargest).forEach(function(line) {
      var m = /^((?:.*[- ])?[lL](?:max)?[=-]?)(\d\d?)( .*)?$/.exec(line.problem), key;
      if (!m) return;
      key = JSON.stringify([line.group, m[1], m[3], line.graph, line.options]);
      if (!families[key]) families[key] = {name: m[1] + '...' + (m[3] || ''), points: []},
        order.push(families[key]);
      families[key].points.push([Number(m[2]), line]);
    });
    return section('Scaling with l', 'At the largest number of rows of each; lower is faster.',
      'charts', order.map(function(f) {
        var line = f.points[0][1];
        f.points.sort(function(a, b) { return a[0] - b[0]; });
        return f.points.length < 2 ? '' : curves(groupTitle(c.groups[line.group]),
          workOf({problem: f.name, graph: line.graph, options: line.options}), f.points,
          ['degree l', 'time per row'], ['', 's'], true,
          function(cell) { return cell.seconds / cell.rows; });
      }).join(''));
  }

  return {speeds: speeds(), charts: rooflines() + times() + scalingWithRows() + scalingWithL()};
}

(function() {
  var made = charts(JSON.parse(document.getElementById('data').textContent));
  for (var id in made) document.getElementById(id).innerHTML = made[id];
})();
