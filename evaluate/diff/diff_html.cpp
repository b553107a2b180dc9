// A difference as one self-contained page: two panes with synchronized scrolling, a table of counts at the top, marks
// for lines and words that differ, source line and provenance in each line's tooltip. Functions without a difference
// are folded, so that the page opens at the first difference.
#include "evaluate/diff/diff_render.h"
#include "evaluate/diff/word_marks.h"
#include "support/text/html_text.h"

#include <algorithm>

namespace ptxrewrite::evaluate {

namespace {

constexpr const char* page_head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>ptxrewrite diff</title><style>
:root{color-scheme:light dark;--changed:#c9a22730;--word:#c9a227a0;--removed:#e0802040;--inserted:#3080e040;--moved:#9060c040}
body{font:14px/1.45 system-ui,sans-serif;margin:0;display:flex;flex-direction:column;height:100vh}
header{padding:8px 16px;border-bottom:1px solid #8886;overflow:auto;max-height:40vh;flex:none;overflow-wrap:anywhere}
h1{font-size:16px;margin:0 0 4px}
table{border-collapse:collapse;overflow-wrap:normal}td:first-child{overflow-wrap:anywhere;min-width:12ch}td,th{padding:1px 12px 1px 0;text-align:right}td:first-child,th:first-child{text-align:left}
nav a{margin-right:12px}label{margin-right:16px}
main{flex:1;display:flex;min-height:0}
.pane{flex:1;overflow:auto;font:13px/1.4 ui-monospace,monospace;border-right:1px solid #8886}
.pane mark{background:var(--word);color:inherit}
.changed .n:after{content:"~"}.removed .n:after{content:"-"}.inserted .n:after{content:"+"}.moved .n:after{content:"^"}
.pane{min-width:0}@media (max-width:700px){main{flex-direction:column}.pane{border-bottom:2px solid #8886}}
.pane div{white-space:pre;min-height:1.4em;padding:0 8px;min-width:max-content}
.pane h2{font:bold 13px ui-monospace,monospace;margin:0;padding:8px;background:#8882;position:sticky;top:0}
.n{display:inline-block;width:7ch;margin-right:1ch;opacity:.5;text-align:right;user-select:none}
.changed{background:var(--changed)}.removed{background:var(--removed)}.inserted{background:var(--inserted)}
.moved{background:var(--moved)}.pane div.at{outline:1px solid #888}
body.short .kept,.pane .folded{display:none}.pane h2.same{cursor:pointer;font-weight:400}
.same span{opacity:.7}.same span:after{content:"; click to show"}.same.open span:after{content:""}
.key span{padding:0 6px;margin-right:6px}
</style></head><body>
)";

// Synchronizes the panes, highlights the line under the pointer on both sides, and hides equal lines.
constexpr const char* page_script = R"(<script>
const panes=[...document.querySelectorAll('.pane')];let busy=false;
panes.forEach((p,i)=>p.addEventListener('scroll',()=>{if(busy)return;busy=true;const o=panes[1-i];
o.scrollTop=p.scrollTop;o.scrollLeft=p.scrollLeft;requestAnimationFrame(()=>busy=false)}));
panes.forEach((p,i)=>{const mark=(e,on)=>{const d=e.target.closest('.pane>div');if(!d)return;
const k=[...p.children].indexOf(d);panes.forEach(q=>q.children[k].classList.toggle('at',on))};
p.addEventListener('mouseover',e=>mark(e,true));p.addEventListener('mouseout',e=>mark(e,false))});
// Functions without a difference: a click on the name shows them and hides them again, on both sides.
function fold(k,closed){panes.forEach(p=>{p.children[k].classList.toggle('open',!closed);
for(let row=p.children[k].nextElementSibling;row&&row.tagName!=='H2';row=row.nextElementSibling)row.classList.toggle('folded',closed)})}
panes.forEach((p,i)=>[...p.children].forEach((h,k)=>{if(!h.matches('h2.same'))return;if(i===0)fold(k,true);
h.addEventListener('click',()=>fold(k,h.classList.contains('open')))}));
document.querySelectorAll('nav a,td a').forEach(a=>a.addEventListener('click',()=>{
const h=document.getElementById(a.hash.slice(1));if(h.matches('.same'))fold([...h.parentElement.children].indexOf(h),false)}));
document.querySelector('#short').addEventListener('change',e=>document.body.classList.toggle('short',e.target.checked));
</script></body></html>
)";

const char* row_class(const AlignedLine& row) {
  if (row.moved) return "moved";
  switch (row.status) {
  case LineStatus::kept:
    return "kept";
  case LineStatus::changed:
    return "changed";
  case LineStatus::removed:
    return "removed";
  case LineStatus::inserted:
    return "inserted";
  }
  return "kept";
}

void append_counts(std::string& out, const DifferenceReport& report) {
  out += "<table><tr><th>function<th>before<th>after<th>kept<th>changed<th>removed<th>inserted<th>moved</tr>\n";
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const Difference& part = report.parts[i];
    if (part.name.empty()) continue;
    const DifferenceCounts& c = part.counts;
    out += "<tr><td><a href=\"#f" + std::to_string(i) + "\">";
    append_escaped(out, part.name);
    out += "</a>";
    for (size_t number : {c.left, c.right, c.kept, c.changed, c.removed, c.inserted, c.moved})
      out += "<td>" + std::to_string(number);
    out += "</tr>\n";
  }
  out += "</table>\n";
}

bool differs(const Difference& part) {
  return std::ranges::any_of(part.rows,
                             [](const AlignedLine& row) { return row.moved || row.status != LineStatus::kept; });
}

// Only beside parts that differ: a page without any difference shows all of its text.
bool is_folded(const DifferenceReport& report, const Difference& part) {
  return !differs(part) && std::ranges::any_of(report.parts, differs);
}

void append_pane(std::string& out, const DifferenceReport& report, bool left) {
  out += "<div class=\"pane\">\n";
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const Difference& part = report.parts[i];
    const bool folded = is_folded(report, part);
    out += "<h2";
    if (left) out += " id=\"f" + std::to_string(i) + '"';
    out += folded ? " class=\"same\">" : ">";
    append_escaped(out, part.name.empty() ? "outside functions" : part.name);
    out += folded ? " <span>unchanged</span></h2>\n" : "</h2>\n";
    for (const AlignedLine& row : part.rows) {
      uint32_t index = left ? row.left : row.right;
      out += std::string("<div class=\"") + row_class(row) + '"';
      if (index == AlignedLine::none) {
        out += "></div>\n";
        continue;
      }
      const ListingLine& line = left ? part.left[index] : part.right[index];
      if (line.source_line) {
        out += " title=\"" + std::string(row_class(row)) + "; line " + std::to_string(line.source_line) + " of ";
        append_escaped(out, report.left_name);
        out += '"';
      }
      out += "><span class=\"n\">" + (line.source_line ? std::to_string(line.source_line) : std::string()) + "</span>";
      if (line.indented) out += "    ";
      if (row.status == LineStatus::changed && row.left != AlignedLine::none && row.right != AlignedLine::none) {
        const MarkedWords words = mark_words(part.left[row.left].text, part.right[row.right].text);
        out += left ? words.left : words.right;
      } else {
        append_escaped(out, line.text);
      }
      out += "</div>\n";
    }
  }
  out += "</div>\n";
}

} // namespace

std::string difference_html(const DifferenceReport& report) {
  std::string out = page_head;
  out += "<header><h1>";
  append_escaped(out, report.left_name);
  out += " &rarr; ";
  append_escaped(out, report.right_name);
  out += "</h1>\n";
  append_counts(out, report);
  out += "<label><input type=\"checkbox\" id=\"short\"> only what differs</label><span class=\"key\">"
         "<span class=\"changed\">~ changed</span><span class=\"removed\">- removed</span>"
         "<span class=\"inserted\">+ inserted</span><span class=\"moved\">^ moved</span></span></header>\n<main>\n";
  append_pane(out, report, true);
  append_pane(out, report, false);
  out += "</main>\n";
  out += page_script;
  return out;
}

} // namespace ptxrewrite::evaluate
